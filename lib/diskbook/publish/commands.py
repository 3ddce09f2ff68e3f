"""`diskbook post`, `diskbook site` and `diskbook sample`."""

from pathlib import Path

import click

from diskbook.cli import complete
from diskbook.cli.options import examples
from diskbook.facts.errors import UsageError, unknown


@click.command(epilog=examples("diskbook sample zone-disks"))
@click.argument("scenarios", nargs=-1, shell_complete=complete.samples)
def sample(scenarios: tuple[str, ...]) -> None:
    """Measure the samples of SCENARIOS (default: all) again, on the emulator.

    Their figures and posts are written again, too.
    """
    from diskbook.design import scenario_file
    from diskbook.publish import sample

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
    from diskbook.publish import site as site_pages
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
    from diskbook.publish import post
    from diskbook.report.analysis import companion_files
    from diskbook.report.analysis.run import analyse
    from diskbook.results import run as runs

    run = runs.open_run(name)
    named = companion_files.check_file(run, file) if file else None
    click.echo(post.write(analyse(run, named), out, names, force=force))
