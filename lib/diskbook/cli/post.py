"""`diskbook post`: a run as Markdown for an editor."""

from __future__ import annotations

from pathlib import Path

import click

from diskbook.cli import complete
from diskbook.cli.examples import examples


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
    from diskbook.report.analysis import companion_files
    from diskbook.report.analysis.run import analyse
    from diskbook.report.post import write
    from diskbook.results import run as runs

    run = runs.open_run(name)
    named = companion_files.check_file(run, file) if file else None
    click.echo(write.write(analyse(run, named), out, names, force=force))
