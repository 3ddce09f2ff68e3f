"""`diskbook catalog`: the catalogue of many runs, rebuilt."""

from __future__ import annotations

import click

from diskbook.cli.examples import examples
from diskbook.cli.output import json_option, show, show_json


@click.command(
    epilog=examples("diskbook catalog", "diskbook catalog runs --json", "diskbook catalog file:///srv/lab")
)
@click.argument("place", required=False, metavar="[RUNS-FOLDER or STORE]")
@json_option
def catalog(place: str | None, as_json: bool) -> None:
    """Rebuild the Parquet index of all runs in a folder or store.

    The default folder is your own. A finished run joins by itself; list, compare and site read the index.
    Rebuild it when it is damaged or from another version, or after you copied or removed runs. A rebuild
    also puts many small files into few (docs/how-to/catalogue.md).
    """
    from diskbook.batch.catalogue import rebuild
    from diskbook.cli import document_of

    rebuilt = rebuild.of(place)
    if as_json:
        show_json(document_of.catalog(rebuilt))
    else:
        show(rebuilt.words)
