"""`diskbook batch`: a matrix of runs, one after the other or side by side."""

from __future__ import annotations

import json
import sys

import click

from diskbook.cli.examples import examples


@click.command(
    epilog=examples("diskbook batch nightly.toml --dry-run", "diskbook batch nightly.toml --dry-run --json")
)
@click.argument("matrix", metavar="MATRIX.toml")
@click.option("--dry-run", is_flag=True, help="Price all of it; nothing is begun, no network is asked.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON; the table goes to stderr.")
def batch(matrix: str, dry_run: bool, as_json: bool) -> None:
    """Run every combination of MATRIX.toml: scenarios, presets, profiles, settings.

    Start it again to go on: what is finished is not repeated, what was cut short is gone on with. Ends with
    0 when all are finished, 1 when some failed, 3 when it was stopped with runs left. docs/batch.md has all
    keys of the file.
    """
    from pathlib import Path

    from diskbook.batch import command, matrix as matrices, summary
    from diskbook.show import documents

    asked = matrices.read(Path(matrix))
    if dry_run:
        text, data = command.dry_run(asked)
        click.echo(
            json.dumps({"schema": documents.BatchPlan.schema_name(), **data}, indent=1) if as_json else text
        )
        return
    outcome = command.run(asked, sys.stderr if as_json else sys.stdout)
    page = command.folder_of(asked) / summary.PAGE
    named = {**outcome, "schema": documents.Batch.schema_name()}
    click.echo(json.dumps(named, indent=1) if as_json else summary.words(outcome, page))
    sys.exit(outcome["exit_code"])
