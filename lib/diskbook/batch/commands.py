"""`diskbook batch`, a matrix of runs; and runs in object storage: `push`, `fetch`, `verify`, `catalog`."""

import json
import sys
from pathlib import Path

import click

from diskbook.cli import complete
from diskbook.cli.options import examples, json_option, show, show_json


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


@click.command(epilog=examples("diskbook push my-run file:///srv/lab"))
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
@click.argument("store", metavar="STORE")
def push(name: str, store: str) -> None:
    """Upload RUN to STORE.

    STORE is file:///FOLDER, abfs://CONTAINER/FOLDER or s3://BUCKET/FOLDER. The upload is atomic, and raw
    results are never replaced. Pushing again uploads only new files. The run's private key stays here.
    """
    from diskbook.batch import stored

    click.echo(stored.push(name, store).words)


@click.command(epilog=examples("diskbook fetch file:///srv/lab/my-run"))
@click.argument("address", metavar="ADDRESS")
@click.option("--unfinished", is_flag=True, help="As far as it has come, also where it is not whole.")
@click.option("--to", "target", type=Path, metavar="FOLDER", help="Into this folder, not among the runs.")
def fetch(address: str, unfinished: bool, target: Path | None) -> None:
    """Download the run at ADDRESS, or update the local copy."""
    from diskbook.batch import stored

    run, changed = stored.fetch(address, unfinished, target)
    click.echo(f"run {run.name}, folder {run.folder}" + ("" if changed else ": nothing new was there"))


@click.command(
    epilog=examples("diskbook verify file:///srv/lab", "diskbook verify file:///srv/lab/my-run --json")
)
@click.argument("place", metavar="STORE")
@json_option
def verify(place: str, as_json: bool) -> None:
    """Check every file of STORE, or of one run in it, against its hash.

    Ends with 1 when something is missing or was changed.
    """
    from diskbook.batch.stores import address, verify as verifying

    runs = []
    for run in verifying.verify(address.parse(place)):
        runs.append(run)
        if not as_json:
            show(run.words)
    if as_json:
        from diskbook.cli import documents

        n_faults = sum(len(run.faults) for run in runs)
        show_json(documents.Verify.model_validate({"runs": runs, "n_faults": n_faults}))
    if any(run.faults for run in runs):
        sys.exit(1)


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

    rebuilt = rebuild.of(place)
    if as_json:
        from diskbook.cli import documents

        rows = {f"n_{table}": number for table, number in rebuilt.rows.items()}
        show_json(documents.Catalog(folder=str(rebuilt.folder), left_out=list(rebuilt.left_out), **rows))
    else:
        show(rebuilt.words)
