"""`diskbook site`: all runs of a folder as a static site."""

from __future__ import annotations

from pathlib import Path

import click

from diskbook.cli.examples import examples
from diskbook.facts.errors import UsageError


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
    from diskbook.report.site import write
    from diskbook.results import run as runs

    click.echo(write.build(folder or runs.runs_root(), out, url or "").words)
