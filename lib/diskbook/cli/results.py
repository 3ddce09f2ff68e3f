"""What there is, and what runs measured: `list`, `import`, `tables`, `why`, `figures`, `record`, `sample`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from diskbook.facts.errors import UsageError, unknown

if TYPE_CHECKING:
    from diskbook.importing.run import Planned


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


_IMPORT_DEFAULTS = {"arms_by": "auto", "same_machine": False, "analysis": "imported"}


@click.command(
    name="import",
    epilog=examples(
        "diskbook import results --dry-run",
        "diskbook import results --name bought --disk-sku Premium_LRS --size-gib 1024",
        'diskbook import results --layout "results/{arm}/{load}*" --json',
        "diskbook import shared.diskbook.zip",
    ),
)
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option("--name", help="Name of the run; by default imported, time and four digits.")
@click.option("--arms-by", default="auto", show_default=True, help="folder, file, target or auto.")
@click.option("--base", metavar="ARM", help="Arm that the others are compared to; by default the first.")
@click.option("--same-machine", is_flag=True, help="All arms were measured on one machine: it cancels then.")
@limit_names
@click.option(
    "--analysis",
    default="imported",
    show_default=True,
    shell_complete=complete.scenarios,
    help="Scenario whose notebook analyses it.",
)
@click.option("--layout", metavar="PATTERN", help='What paths mean, e.g. "{arm}/{replicate}/{load}*".')
@click.option(
    "--columns",
    metavar="MAPPING",
    help="Read PATH as tables: iops=IOPS,block_size=bs,... or FILE.toml (docs/how-to/import.md).",
)
@click.option(
    "--scenario",
    metavar="NAME",
    shell_complete=complete.scenarios,
    help="Map arms and loads onto this scenario; its notebook applies.",
)
@click.option(
    "--dry-run", is_flag=True, help="Say what would be imported: arms, loads, repeats; write nothing."
)
@click.option("--report", is_flag=True, help="Run the analysis notebook, too, and make report.html.")
@click.option("--dataset", metavar="NAME", help="Make a run of a public data set that comes with diskbook.")
@click.option(
    "--from", "folder", metavar="FOLDER", help="Recompute the data set's tables from its authors' files."
)
@limit_numbers
@json_option
def import_(
    paths: tuple[str, ...],
    name: str | None,
    report: bool,
    dataset: str | None,
    folder: str | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Import results of fio, DiskSpd and other tools as a run.

    The others are elbencho, sysbench, kubestr, bench_fio, VMFleet and PerfKitBenchmarker.

    An arm is a full target: folder, host, path or device; sessions of measuring are its blocks. The fields of
    --layout are arm, replicate, block, session and load; * and {_} mean nothing.

    A file of 'diskbook share' is checked, and its tables are computed again from its raw results.

    --dataset takes no PATH: docs/reference/public-data.md lists the sets. With --from it recomputes the set's
    table from its authors' files instead, and makes no run.
    """
    if _is_bundle(paths, dataset, folder):
        _take(paths[0], name, report, {**options, "dry_run": dry_run, "json": as_json})
        return
    _check_dataset(paths, dataset, folder, {**options, "report": report, "dry_run": dry_run, "json": as_json})
    if folder is not None:
        from diskbook.importing import authors

        click.echo(authors.run(dataset or "", folder, name))
        return
    from diskbook.importing import preview

    planned = preview.plan(paths, name, options, dataset)
    if dry_run:
        if as_json:
            from diskbook.cli import document_of

            show_json(document_of.planned_import(planned))
        else:
            click.echo(preview.words(planned))
        return
    _write(planned, report, as_json)


def _write(planned: Planned, report: bool, as_json: bool) -> None:
    """Write the run of an import, and its report if wanted; print what was made."""
    from diskbook.importing import preview, run as importer, terminal as import_text

    with progress_apart(as_json):
        if sentences := preview.reading(planned):
            click.echo(sentences)
        made = importer.write_run(planned)
        if not as_json:
            click.echo(import_text.text(made))
        page = import_text.report(made.run) if report else None
    if as_json:
        from diskbook.cli import document_of

        show_json(document_of.imported(made, page))
    elif page:
        click.echo(f"report: {page}")


def _is_bundle(paths: tuple[str, ...], dataset: str | None, folder: str | None) -> bool:
    if len(paths) != 1 or dataset is not None or folder is not None or not Path(paths[0]).is_file():
        return False
    from diskbook.sharing import bundle

    return bundle.is_bundle(Path(paths[0]))


def _take(path: str, name: str | None, report: bool, options: dict[str, Any]) -> None:
    """Import a bundle, which says itself what its arms and limits are."""
    plain = {**dict.fromkeys(options), **_IMPORT_DEFAULTS, "dry_run": False, "json": False}
    if named := [key for key, value in options.items() if value != plain[key]]:
        raise UsageError(f"--{named[0].replace('_', '-')} has no meaning for a bundle: leave it out")
    from diskbook.sharing import take

    taken = take.take(Path(path), name)
    show(taken.words)
    if report:
        from diskbook.measure.runs import outcome, stage

        with stage.analysing(taken.run):
            pass
        click.echo(outcome.of(taken.run).words)


def _check_dataset(
    paths: tuple[str, ...], dataset: str | None, folder: str | None, options: dict[str, Any]
) -> None:
    """Refuse options that have no meaning for a public data set, and an import of nothing."""
    if dataset is None and folder is None:
        if not paths:
            raise UsageError("name files or folders to import, or a public data set by --dataset NAME")
        return
    if dataset is None:
        raise UsageError("--from recomputes the tables of a data set: name it by --dataset NAME")
    if paths:
        raise UsageError(
            "--dataset takes no PATH: its figures come with diskbook, its files by --from FOLDER"
        )
    shown = () if folder else ("report", "dry_run", "json")
    plain = {**dict.fromkeys(options), **_IMPORT_DEFAULTS, "report": False, "dry_run": False, "json": False}
    named = [key for key, value in options.items() if value != plain[key] and key not in shown]
    if named:
        raise UsageError(f"--{named[0].replace('_', '-')} has no meaning with --dataset: leave it out")


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
        from diskbook.importing import why as import_why

        diagnosed = import_why.of_run(name, arm, workload, given)
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


@click.command(epilog=examples("diskbook record recorded"))
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
def record(name: str) -> None:
    """Pack RUN's recording of Azure into one file to send.

    It holds the manifest, too. The command lists the texts that it replaced.

    Start the run with --record, here and as the same user. Only then are pseudonyms the same everywhere.
    """
    from diskbook.cloud.azure import recording
    from diskbook.results import run as runs

    click.echo(recording.pack(runs.open_run(name)).words)


@click.command(
    epilog=examples(
        "diskbook share sample-zone-disks --dry-run",
        'diskbook share my-run --by "A. Author, 2026" --out shared --yes',
    )
)
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
@click.option(
    "--out", type=Path, default=Path(), metavar="DIR", help="Folder of the file; by default this one."
)
@click.option(
    "--by", default="", metavar="WHO", help="Name whom to cite; by default the file names no author."
)
@click.option(
    "--licence", default="CC-BY-4.0", show_default=True, metavar="SPDX", help="Set the licence of the data."
)
@click.option("--dry-run", is_flag=True, help="Show what would be replaced and what is left; write nothing.")
@click.option("--yes", is_flag=True, help="Write without asking, for scripts.")
def share(name: str, out: Path, by: str, licence: str, dry_run: bool, yes: bool) -> None:
    """Pack RUN into one file to share, without private data.

    It shows what it replaced and every text that is left, and asks before it writes. Notebooks, reports and
    figures stay here. Whoever imports the file computes them again.

    The command refuses a run in which it finds something private that it cannot replace, and names file and
    line.
    """
    from diskbook.results import run as runs
    from diskbook.sharing import share as sharing

    prepared = sharing.prepare(runs.open_run(name), licence, by)
    show(prepared.page)
    if dry_run:
        return
    if not yes and not click.confirm(f"\nWrite {out / prepared.name}?"):
        raise UsageError("nothing was written")
    click.echo(prepared.write(out))


@click.command(epilog=examples("diskbook sample zone-disks"))
@click.argument("scenarios", nargs=-1, shell_complete=complete.samples)
def sample(scenarios: tuple[str, ...]) -> None:
    """Measure the samples of SCENARIOS (default: all) again, on the emulator.

    Their figures and posts are written again, too.
    """
    from diskbook.design import scenario_file
    from diskbook.measure.runs import sample

    for name in scenarios or scenario_file.sampled():
        if name not in scenario_file.sampled():
            raise unknown("sample", name, scenario_file.sampled())
        outcome = sample.make(name)
        click.echo(outcome.words)


@click.command(epilog=examples("diskbook site", "diskbook site --runs runs --out public"))
@click.option(
    "--runs", "folder", type=Path, metavar="DIR", help="Folder that holds the runs; by default your own."
)
@click.option(
    "--out", type=Path, default=Path("site"), show_default=True, metavar="DIR", help="Folder of the site."
)
@click.option("--url", metavar="URL", help="Public address of the site; pages then carry Open Graph cards.")
def site(folder: Path | None, out: Path, url: str | None) -> None:
    """Write a site of all runs.

    It has a start page, one page per scenario and run, and the published figures.

    Double-click index.html to open it. It filters without a server, and loads nothing from the network. The
    command replaces an earlier site in the same folder, and leaves any other folder alone.
    """
    if url is not None and not url.startswith(("https://", "http://")):
        raise UsageError(f"--url {url}: write a whole address, for example https://example.org/disks")
    from diskbook.report import site as site_pages
    from diskbook.results import run as runs

    click.echo(site_pages.build(folder or runs.runs_root(), out, url or "").words)


@click.command(
    epilog=examples(
        "diskbook post sample-zone-disks --out drafts",
        "diskbook post sample-zone-disks --out drafts --figure ratios --figure percentiles",
    )
)
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
@click.option("--scenario", "file", type=Path, metavar="FILE", help="The scenario's file, of your own.")
@click.option("--out", type=Path, metavar="DIR", help="Folder; by default posts, of a sample docs/posts.")
@click.option(
    "--figure",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=complete.figures,
    help="This figure, e.g. ratios; may be named twice. By default the two that carry the answer.",
)
@click.option("--force", is_flag=True, help="Write over the post of another run.")
def post(name: str, file: Path | None, out: Path | None, names: tuple[str, ...], force: bool) -> None:
    """Write RUN as a post for an editor, in Markdown with figures.

    It has the answer, two figures, one table, the method in five lines, limits, and how to measure it again.
    If the run was emulated, the first lines say so.
    """
    from diskbook.report import post
    from diskbook.report.analysis import companion_files
    from diskbook.report.analysis.run import analyse
    from diskbook.results import run as runs

    run = runs.open_run(name)
    named = companion_files.check_file(run, file) if file else None
    click.echo(post.write(analyse(run, named), out, names, force=force))
