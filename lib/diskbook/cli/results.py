"""What there is, and what runs measured: `list`, `tables`, `why`, `figures`, `report`."""

from pathlib import Path
from typing import Any

import click

from diskbook.cli import complete
from diskbook.cli.options import (
    examples,
    json_option,
    limit_names,
    limit_numbers,
    progress_apart,
    show,
    show_json,
)
from diskbook.facts import neighbours
from diskbook.facts.errors import UsageError


@click.command(name="list", epilog=examples("diskbook list", "diskbook list --json"))
@click.option("-v", "--verbose", is_flag=True, help="Print whole answers, and where the reports are.")
@json_option
def list_(verbose: bool, as_json: bool) -> None:
    """List the scenarios, and the runs with their answers."""
    from diskbook.cli import document_of
    from diskbook.measure.runs import overview

    if as_json:
        show_json(document_of.overview())
    else:
        show(overview.text(verbose=verbose))


@click.command(epilog=examples("diskbook tables my-run", "diskbook tables my-run --json"))
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
@json_option
def tables(name: str, as_json: bool) -> None:
    """Rebuild the tables of RUN from its raw results."""
    from diskbook.results import run as runs, tables as store_tables

    folder = runs.open_run(name)
    built = store_tables.build(folder)
    store_tables.write(built, folder.folder)
    if as_json:
        from diskbook.cli import documents

        rows = {"n_trials": len(built.trials), "n_bins": len(built.bins), "n_series": len(built.series)}
        show_json(documents.Tables(run=folder.name, **rows))
        return
    click.echo(
        f"{len(built.trials)} rows of trials, {len(built.bins)} of bins, {len(built.series)} of series"
    )


@click.command(
    epilog=examples(
        "diskbook why sample-zone-disks",
        "diskbook why sample-zone-disks --arm zrs-z2 --json",
        "diskbook why --protocol sample-zone-disks",
        "diskbook why bought --vm-size Standard_D4as_v4 --disk-iops 5000",
    )
)
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
@click.option("--arm", metavar="NAME", help="Only this arm.")
@click.option("--workload", metavar="NAME", help="Only this workload.")
@click.option("--protocol", "by_protocol", is_flag=True, help="What each comparison lacks to be closed.")
@limit_names
@limit_numbers
@json_option
def why(
    name: str, arm: str | None, workload: str | None, by_protocol: bool, as_json: bool, **limits: Any
) -> None:
    """Explain for each cell of RUN which limit held it, and what would help.

    It also says which cells have evidence from the platform's metrics, and why others have none.
    Limits of a disk or machine that an import lacks can be named; they hold for this answer alone.

    With --protocol, list for every comparison of RUN the missing points of docs/reference/protocol.md, and
    their remedies.
    """
    given = {name: value for name, value in limits.items() if value is not None}
    if given and by_protocol:
        raise UsageError("--protocol is about comparisons: leave the limits out, or import again with them")
    from diskbook.cli import document_of
    from diskbook.report.analysis import why_text

    if by_protocol:
        if as_json:
            show_json(document_of.protocol(name, arm, workload))
        else:
            show(why_text.protocol_of_run(name, arm, workload))
        return
    if given:
        diagnosed = neighbours.imported_why.of_run(name, arm, workload, given)
    else:
        diagnosed = why_text.diagnosed(name, arm, workload)
    if as_json:
        show_json(document_of.why(diagnosed))
    else:
        show(diagnosed.text)


@click.command(
    epilog=examples(
        "diskbook figures sample-zone-disks --only ratios",
        "diskbook figures sample-zone-disks --only ratios --out blog --width 390 --theme print",
    )
)
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
@click.option("--scenario", "file", type=Path, metavar="FILE", help="The scenario's file, of your own.")
@click.option(
    "--out",
    type=Path,
    metavar="DIR",
    help="Folder; by default figures/<run>, of a sample figures/<scenario>.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=complete.figures,
    help="Only this figure, e.g. ratios; may be repeated.",
)
@click.option(
    "--width",
    type=click.IntRange(300, 2400),
    default=720,
    show_default=True,
    metavar="PX",
    help="Draw it for this width, 300 to 2400 pixels; below 520 as for a phone.",
)
@click.option(
    "--theme",
    type=click.Choice(["auto", "light", "dark", "print"]),
    default="auto",
    show_default=True,
    help="auto: light, and dark where the page that it is shown on is. print: for journals, black on white, "
    "colours whose greys differ, PNG of 400 dots to the inch.",
)
@click.option("--force", is_flag=True, help="Write over figures of another run.")
def figures(name: str, file: Path | None, out: Path | None, only: tuple[str, ...], **look: Any) -> None:
    """Export the figures of RUN as SVG and PNG, with captions and numbers.

    Beside <figure>.svg and <figure>@2x.png there are .caption.txt, .description.txt, .csv, .md and .html.
    """
    from diskbook.report.analysis import companion_files, write
    from diskbook.report.analysis.run import analyse
    from diskbook.report.figures import Look
    from diskbook.results import run as runs

    run = runs.open_run(name)
    asked = Look(look["width"], look["theme"])
    named = companion_files.check_file(run, file) if file else None
    target = out or write.folder_of_figures(run)
    for path in write.export_figures(analyse(run, named), target, asked, only, force=look["force"]):
        click.echo(path)


@click.command(epilog=examples("diskbook report my-run", "diskbook report my-run --json"))
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
@click.option("--scenario", "file", metavar="FILE", help="The scenario's file, of your own.")
@json_option
def report(name: str, file: str | None, as_json: bool) -> None:
    """Analyse RUN and write its report. Works offline, also on a colleague's run."""
    from diskbook.cli import document_of
    from diskbook.measure.runs import stage
    from diskbook.results import run as runs

    run = runs.open_run(name)
    with progress_apart(as_json):
        with stage.analysing(run, file):  # what takes seconds to import comes while the notebook runs
            from diskbook.measure.runs import outcome
            from diskbook.report.analysis import report as reports

            reports.prepare()
        ended = outcome.of(run)
    if as_json:
        show_json(document_of.report(ended))
    else:
        click.echo(ended.words)
