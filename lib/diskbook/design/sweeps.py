"""Sweeps of a scenario's file: a grid of threads, block sizes and shares of writes, made into its workloads.

A sweep with `instances` is of fleets; they do not show in the names of its loads, which are each machine's.

Sweeps of one grid for several groups of arms give workloads of one name, which are one workload for all of
them: that is what their ratios are made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from diskbook.design.model import Name, Record, block_bytes
from diskbook.facts.units import KIB

_BlockSize = Annotated[int, BeforeValidator(block_bytes), Field(gt=0)]
_Axis = Field(strict=False, min_length=1, max_length=20)


class Sweep(Record):
    """A grid of loads. Its other keys are those of each workload; they are checked there."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    name: Name
    threads: Annotated[tuple[Annotated[int, Field(ge=1, le=64)], ...], _Axis]
    block_sizes: Annotated[tuple[_BlockSize, ...], _Axis]
    write_pcts: Annotated[tuple[Annotated[int, Field(ge=0, le=100)], ...], _Axis] = (0, 100)
    queue_depth: Annotated[int, Field(ge=1, le=1024)] = 1
    arms: Annotated[tuple[str, ...], Field(strict=False)] = ()


class Sweeps(Record):
    """All sweeps of a file."""

    sweep: tuple[Sweep, ...] = Field(default=(), strict=False)


def workloads(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Make the workloads of a file's sweeps, as rows of the file.

    Parameters
    ----------
    raw
        The file's tables; only `sweep` is read.

    Returns
    -------
    list of dict
        In the order of the sweeps, each name once.

    Raises
    ------
    ValueError
        Also as pydantic's ValidationError: where a sweep is not what it must be, or where two give loads of
        one name that differ in more than their arms.
    """
    rows: dict[str, dict[str, Any]] = {}
    for sweep in Sweeps.model_validate({"sweep": raw.get("sweep", [])}).sweep:
        for row in _rows(sweep):
            earlier = rows.setdefault(row["name"], row)
            if earlier is row:
                continue
            if any(earlier.get(key) != row.get(key) for key in (earlier.keys() | row.keys()) - {"arms"}):
                raise ValueError(
                    f"[[sweep]] {sweep.name}: {row['name']} is a load of an earlier sweep, which differs in "
                    "more than arms; give both the same keys"
                )
            arms = dict.fromkeys([*earlier["arms"], *row["arms"]]) if earlier["arms"] and row["arms"] else ()
            rows[row["name"]] = {**earlier, "arms": list(arms)}
    return list(rows.values())


def _rows(sweep: Sweep) -> Iterator[dict[str, Any]]:
    common = {**(sweep.model_extra or {}), "queue_depth": sweep.queue_depth, "arms": list(sweep.arms)}
    for block in sweep.block_sizes:
        for write_pct in sweep.write_pcts:
            for threads in sweep.threads:
                load = {"block_size": block, "write_pct": write_pct, "threads": threads}
                yield {**common, **load, "name": _name(block, write_pct, threads, sweep.queue_depth)}


def _name(block: int, write_pct: int, threads: int, depth: int) -> str:
    """Name a load for what it is, e.g. "read-4k-12x8": threads x outstanding of each."""
    kind = {0: "read", 100: "write"}.get(write_pct, f"write{write_pct}")
    size = f"{block // KIB}k" if block % KIB == 0 else str(block)
    return f"{kind}-{size}-{threads}x{depth}"
