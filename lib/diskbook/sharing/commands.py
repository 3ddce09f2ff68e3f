"""`diskbook share` and `diskbook record`: one file to send, without private data; and `diskbook pool`."""

from pathlib import Path

import click

from diskbook.cli import complete
from diskbook.cli.options import examples, show
from diskbook.facts.errors import UsageError


@click.command(epilog=examples("diskbook record recorded"))
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
def record(name: str) -> None:
    """Pack RUN's recording of Azure into one file to send.

    It holds the manifest, too. The command lists the texts that it replaced.

    Start the run with --record, here and as the same user. Only then are pseudonyms the same everywhere.
    """
    from diskbook.results import run as runs
    from diskbook.sharing import recording

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


@click.command(epilog=examples("diskbook pool sample-zone-disks my-run"))
@click.argument("names", nargs=-1, required=True, metavar="RUN RUN...", shell_complete=complete.runs)
def pool(names: tuple[str, ...]) -> None:
    """Pool two or more runs of one question.

    Prints each headline comparison: the change over these runs, and over runs like these from three runs on.
    Below it stand the runs, what the spread comes from, and what would change the answer. The notebook
    9-pool.ipynb has the same with a picture.
    """
    from diskbook.sharing import pooled

    for line in pooled.headlines(names):
        click.echo(line)
