"""`diskbook batch`: a matrix of runs, one after the other or side by side."""

import json
import sys

import click

from diskbook.cli.output import examples


@click.command(
    epilog=examples(
        "diskbook batch nightly.toml --dry-run",
        "diskbook batch nightly.toml --dry-run --json",
        "diskbook batch nightly.toml --engine dask --store file:///srv/lab --dry-run",
    )
)
@click.argument("matrix", metavar="MATRIX.toml")
@click.option(
    "--dry-run", is_flag=True, help="Price all of it; nothing is begun, and no network asked but a store's."
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON; the table goes to stderr.")
@click.option(
    "--engine",
    type=click.Choice(["local", "dask"]),
    help="Where runs run: this machine's processes, or a Dask cluster; else as the file says.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask: tls://HOST:8786; else a cluster on this machine.")
@click.option("--store", metavar="STORE", help="Keep runs in this store while they are worked on.")
@click.option("--tls-ca", metavar="FILE", help="Dask: certificate of the authority, PEM.")
@click.option("--tls-cert", metavar="FILE", help="Dask: certificate of this client, PEM.")
@click.option("--tls-key", metavar="FILE", help="Dask: its private key, PEM.")
def batch(
    matrix: str,
    dry_run: bool,
    as_json: bool,
    engine: str | None,
    scheduler: str | None,
    store: str | None,
    **tls: str | None,
) -> None:
    """Run every combination of MATRIX.toml.

    A matrix has scenarios, presets, profiles and settings. It runs on this machine, or on a Dask cluster
    (docs/how-to/cluster.md).

    Start it again to continue: finished runs are skipped, interrupted runs resume. Exit status: 0 when all
    are finished, 1 when some failed, 3 when it stopped with runs left. docs/how-to/batch.md has all keys.
    """
    from pathlib import Path

    from diskbook.batch import command, location as places, matrix as matrices, summary
    from diskbook.batch.dask_cluster import Tls
    from diskbook.cli import documents

    asked = matrices.read(Path(matrix))
    given = Tls(*(tls[f"tls_{name}"] for name in ("ca", "cert", "key")))
    place = places.of(asked, engine, scheduler, store, given)
    if dry_run:
        text, data = command.dry_run(asked, place)
        named = {"schema": documents.BatchPlan.schema_name(), **data}
        click.echo(json.dumps(named, indent=1) if as_json else text)
        return
    outcome = command.run(asked, sys.stderr if as_json else sys.stdout, place)
    page = command.folder_of(asked) / summary.PAGE
    named = {**outcome, "schema": documents.Batch.schema_name()}
    click.echo(json.dumps(named, indent=1) if as_json else summary.words(outcome, page))
    sys.exit(outcome["exit_code"])
