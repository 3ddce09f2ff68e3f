"""`diskbook limits`: the documented disk limits of a VM size."""

from __future__ import annotations

import click

from diskbook.cli.examples import examples
from diskbook.cli.output import json_option, show, show_json


@click.command(epilog=examples("diskbook limits Standard_E4bds_v5", "diskbook limits Standard_D4s_v6 --json"))
@click.argument("size")
@json_option
def limits(size: str, as_json: bool) -> None:
    """Print the documented disk limits of a VM size, and the caps that others saw.

    Each figure has its source and date, one row per attachment (SCSI, NVMe) and kind of disk. MB are 10^6
    bytes. All sizes are in data/limits, as CSV and Parquet (docs/reference/limits.md).
    """
    from dataclasses import asdict

    from diskbook.cli import documents
    from diskbook.facts import catalog, limits as reference, neighbours
    from diskbook.report.show import limits as text

    rows = reference.limits_of(catalog.vm_size(size))
    seen = neighbours.seen_caps.caps(rows[0].size)
    if as_json:
        known = [documents.LimitRow(**asdict(row)) for row in rows]
        show_json(documents.Limits(rows=known, seen=[documents.SeenCap(**asdict(item)) for item in seen]))
    else:
        show("\n".join([text.words(rows), *([""] if seen else []), *(item.words for item in seen)]))
