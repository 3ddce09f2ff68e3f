"""`diskbook import`: results of others, a public data set, or the file of a shared run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
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
from diskbook.facts import neighbours
from diskbook.facts.errors import UsageError

if TYPE_CHECKING:
    from diskbook.cli.documents import Document
    from diskbook.importing.run import Imported, Planned


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
            counts = Counter(entry.arm for entry in planned.entries)
            arms = {arm: counts[arm] for arm in planned.arms}
            show_json(_document(planned, arms, run=planned.name, written=False, report=""))
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
        show_json(_document(made, made.arms, run=made.run.name, written=True, report=str(page or "")))
    elif page:
        click.echo(f"report: {page}")


def _is_bundle(paths: tuple[str, ...], dataset: str | None, folder: str | None) -> bool:
    if len(paths) != 1 or dataset is not None or folder is not None or not Path(paths[0]).is_file():
        return False
    return bool(neighbours.bundles.is_bundle(Path(paths[0])))


def _take(path: str, name: str | None, report: bool, options: dict[str, Any]) -> None:
    """Import a bundle, which says itself what its arms and limits are."""
    plain = {**dict.fromkeys(options), **_IMPORT_DEFAULTS, "dry_run": False, "json": False}
    if named := [key for key, value in options.items() if value != plain[key]]:
        raise UsageError(f"--{named[0].replace('_', '-')} has no meaning for a bundle: leave it out")
    taken = neighbours.bundled_runs.take(Path(path), name)
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


def _document(of: Planned | Imported, arms: Mapping[str, int], **own: Any) -> Document:
    """Say what was imported, or would be; `own` are the keys that differ."""
    from diskbook.cli import documents

    return documents.Import(
        arms=dict(arms),
        n_measurements=sum(arms.values()),
        remarks=list(of.flags),
        not_used=list(of.refused),
        paths_read_as=list(of.reading),
        **own,
    )
