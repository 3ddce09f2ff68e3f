"""`diskbook site`: all runs of a folder as a static site."""

from __future__ import annotations

from pathlib import Path

import click

from diskbook.cli.examples import examples


@click.command(epilog=examples("diskbook site", "diskbook site --runs runs --out public"))
@click.option(
    "--runs", "folder", type=Path, metavar="DIR", help="Folder that holds the runs; by default your own."
)
@click.option(
    "--out", type=Path, default=Path("site"), show_default=True, metavar="DIR", help="Folder of the site."
)
def site(folder: Path | None, out: Path) -> None:
    """Write a site of all runs: an index, a page a scenario and a run, and the published figures re-examined.

    It opens from disk by a double click on index.html, filters without a server, and asks nobody for
    anything. An earlier site in the same folder is replaced; any other folder is left alone.
    """
    from diskbook.report.site import write
    from diskbook.results import run as runs

    click.echo(write.build(folder or runs.runs_root(), out).words)
