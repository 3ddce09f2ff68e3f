"""A batch from its file to its outcome: one process at a time holds it."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from diskbook.batch import location as places, notebook, price as prices, summary
from diskbook.batch.engine import Engine
from diskbook.batch.local import LocalEngine
from diskbook.batch.loop import FAILED, FINISHED, Batch, Row
from diskbook.batch.matrix import Matrix
from diskbook.batch.progress import Table
from diskbook.batch.quota import Quotas
from diskbook.batch.run_lookup import Shelf
from diskbook.cost import budget
from diskbook.cost.estimate import MARGIN
from diskbook.facts import files
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import duration
from diskbook.results import run as runs


def folder_of(matrix: Matrix) -> Path:
    """Folder of a batch, beside its runs: page, data and logs. It has no manifest, so it is not a run."""
    return runs.runs_root() / f"batch-{matrix.name}"


def limit_of(matrix: Matrix) -> float | None:
    """The limit that binds all runs together: the file's, or on Azure the usual one of a run."""
    if matrix.max_cost_usd is not None:
        return matrix.max_cost_usd
    on_azure = any(item.cloud == "azure" for item in matrix.items)
    return budget.DEFAULT_LIMIT_USD if on_azure else None


def batch_of(matrix: Matrix, engine: Engine, shelf: Shelf, *, ask: bool) -> Batch:
    """Look how far each run is, and price what is left; `ask` says whether Azure's price list is asked."""
    limit = limit_of(matrix)
    price = prices.pricing(matrix.items, limit, ask=ask)
    return Batch(matrix.items, engine, limit, price, shelf, Quotas(matrix.quota))


def run(matrix: Matrix, stream: TextIO, place: places.Place | None = None) -> dict[str, Any]:
    """Run a batch, or the rest of it; return its outcome as `summary.content` has it.

    - `stream`: takes the table.
    - `place`: where it runs; by default what its file says.

    Raises DiskbookError when another process runs it, its folder cannot be written, or where it runs cannot
    be had or is lost.
    """
    place = place or places.of(matrix)
    folder = folder_of(matrix)
    folder.mkdir(parents=True, exist_ok=True)
    busy = DiskbookError(f"batch {matrix.name} is being run by another process; wait for it, or end it")
    with files.locked(folder / ".lock", busy), places.opened(place, matrix, folder) as engine:
        batch = batch_of(matrix, engine, place.shelf(folder), ask=True)
        print(_beginning(matrix, batch), file=stream, flush=True)
        if place.warning:
            print(place.warning, file=stream, flush=True)
        return _play(matrix, batch, folder, stream)


def _play(matrix: Matrix, batch: Batch, folder: Path, stream: TextIO) -> dict[str, Any]:
    """Run it, with its table, and the page written again as often as that costs little."""
    table, written = Table(batch, stream), Seldom(lambda: summary.write(matrix, batch, folder))

    def tell(event: str, row: Row) -> None:
        table.tell(event, row)
        if event:
            written.ask()

    try:
        batch.run(tell)
    finally:
        table.close()
        outcome = summary.write(matrix, batch, folder)
    if batch.stopped is not None:  # whoever stopped it wants its end
        return outcome
    if failure := notebook.make(folder):
        print(failure, file=stream, flush=True)
    return summary.write(matrix, batch, folder)  # whose page links the notebook


class Seldom:
    """Does something when asked, unless it has lately: it takes a small share of the time at most."""

    SHARE = 0.05

    def __init__(self, do: Callable[[], object]) -> None:
        self._do, self._not_before = do, 0.0

    def ask(self) -> None:
        """Do it, if it is time."""
        began = time.monotonic()
        if began >= self._not_before:
            self._do()
            ended = time.monotonic()
            self._not_before = ended + (ended - began) / self.SHARE


def _beginning(matrix: Matrix, batch: Batch) -> str:
    limit = (
        "no spending limit" if batch.purse.limit is None else f"at most {batch.purse.limit:.2f} USD in all"
    )
    done = f", {batch.count(FINISHED)} finished before" if batch.count(FINISHED) else ""
    return (
        f"batch {matrix.name}: {len(batch.rows)} runs{done}; at most {batch.engine.lanes} at once, {limit}; "
        f"folder {folder_of(matrix)}"
    )


def dry_run(matrix: Matrix, place: places.Place | None = None) -> tuple[str, dict[str, Any]]:
    """Price a whole batch, by the dated table; in words, and as data. No network but that of its store."""
    folder = folder_of(matrix)
    shelf = (place or places.of(matrix)).shelf(folder)
    batch = batch_of(matrix, LocalEngine(folder, matrix.jobs), shelf, ask=False)
    rows = [_plan_row(row) for row in batch.rows]
    expected = sum(row["expected_usd"] for row in rows)
    most = expected * MARGIN + batch.purse.spent
    data = {
        "batch": matrix.name,
        "runs": rows,
        "expected_usd": round(expected, 4),
        "spent_usd": round(batch.purse.spent, 4),
        "limit_usd": batch.purse.limit,
        "fits": batch.purse.limit is None or most <= batch.purse.limit,
        "seconds": round(batch.left_s, 1),
    }
    return "\n".join([*_plan_lines(batch.rows), "", _total(batch, data, most)]), data


def _plan_row(row: Row) -> dict[str, Any]:
    return {
        "run": row.item.name,
        "label": row.item.label,
        "state": row.state if row.state in (FINISHED, FAILED) else str(row.standing.state),
        "reason": row.reason,
        "expected_usd": round(row.price.expected_usd, 4),
        "seconds": round(row.price.seconds, 1),
        "prices": row.price.source,
    }


def _plan_lines(rows: Sequence[Row]) -> list[str]:
    lines = [f"{'state':<10}  {'USD':>8}  {'time':>8}  run"]
    for row in rows:
        made = _plan_row(row)
        time = "-" if made["state"] == FINISHED else duration(made["seconds"])
        why = f": {made['reason']}" if made["reason"] else ""
        numbers = f"{made['state']:<10}  {made['expected_usd']:>8.2f}  {time:>8}"
        lines.append(f"{numbers}  {made['run']}  {made['label']}{why}")
    return lines


def _total(batch: Batch, data: dict[str, Any], most: float) -> str:
    limit = batch.purse.limit
    lines = [
        f"{len(batch.rows)} runs, {batch.count(FINISHED)} of them finished; {data['expected_usd']:.2f} USD "
        f"expected for the rest, after {data['spent_usd']:.2f} USD spent; about {duration(data['seconds'])} "
        "if one runs after the other"
    ]
    sources = dict.fromkeys(row["prices"] for row in data["runs"] if row["prices"])
    lines += [f"prices: {'; '.join(sources)}"] if sources else []
    if limit is None:
        lines.append("no spending limit: these runs create nothing on Azure, whose prices these are")
    else:
        holds = "holds" if data["fits"] else "stops the batch before its last run; raise max_cost_usd"
        lines.append(
            f"with a margin of {100 * (MARGIN - 1):.0f} % that is up to {most:.2f} USD; the limit of "
            f"{limit:.2f} USD {holds}"
        )
    return "\n".join(lines)
