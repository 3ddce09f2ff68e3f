"""`diskbook catalog`: the catalogue of many runs, made anew."""

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
    """Make the catalogue of a folder of runs, by default your own, or of a store anew: Parquet of all runs.

    A run joins it by itself when it is finished; list, compare and site read it where it is current. It is
    made anew when it is damaged or of another version, when runs were copied or removed, and now and then to
    put many small files into few (docs/how-to/catalogue.md).
    """
    from diskbook.report.catalogue import rebuild

    rebuilt = rebuild.of(place)
    if as_json:
        show_json(rebuild.document(rebuilt))
    else:
        show(rebuilt.words)
