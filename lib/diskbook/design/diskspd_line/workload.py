"""A workload given as somebody's DiskSpd line, word for word: what it means in the workbook's own terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from diskbook.design.diskspd_line.arguments import Arguments, parse
from diskbook.facts.errors import UsageError
from diskbook.facts.units import GIB


def expand(raw: Any) -> Any:
    """Put what a line says into the keys of a workload; tables without `verbatim` pass unchanged.

    Raises
    ------
    ValueError
        When the line cannot be read, or another key says something else; one sentence.
    """
    if not isinstance(raw, Mapping) or not isinstance(raw.get("verbatim"), str):
        return raw
    try:
        fields = fields_of(parse(raw["verbatim"]))
    except UsageError as error:
        raise ValueError(str(error)) from None
    for key, value in fields.items():
        # A manifest holds what the line meant; the wording of remarks may be of another version.
        if key in raw and raw[key] != value and key != "remarks":
            raise ValueError(
                f"verbatim says the whole load, so '{key}' cannot be set beside it (it means {value!r}); "
                "change the line"
            )
    if "working_set_gib" not in fields and "working_set_gib" not in raw:
        raise ValueError("the line of verbatim gives its target no size (-c or -f); set working_set_gib")
    return {**fields, **raw}


def fields_of(line: Arguments) -> dict[str, Any]:
    """Keys of a workload that mean the same as a line of DiskSpd.

    Threads and outstanding I/Os are totals over the targets that the line names, all of which are on the
    one disk under test.
    """
    fields = {
        "pattern": "random" if line.random_pct else "sequential",
        "block_size": line.block_size,
        "write_pct": line.write_pct,
        "threads": line.threads,
        "queue_depth": line.depth,
        "rate": line.rate_iops,
        "sync": "dsync" if line.write_through and line.write_pct else None,
        "ramp_s": float(line.warmup_s),
        "runtime_s": float(line.duration_s),
        "remarks": tuple(remarks(line)),
    }
    if line.span_bytes is not None:
        fields["working_set_gib"] = line.span_bytes / GIB
    if line.iops_interval_ms is not None:
        fields["series_s"] = line.iops_interval_ms / 1000
    return fields


def remarks(line: Arguments) -> Iterator[str]:
    """What a reader of the line's results must know, one sentence each, without a full stop."""
    if line.create_bytes is not None:
        yield _unwritten(line)
    if not line.latency:
        yield "no -L: DiskSpd measures no latencies"
    if line.cache != "off":
        yield "neither -Su nor -Sh: the file cache answers, so this may measure memory and not the disk"
    if len(line.targets) > 1:
        yield f"its {len(line.targets)} targets are on the one disk under test"
    if line.cooldown_s:
        yield f"-C{line.cooldown_s}: only DiskSpd goes on after measuring; fio ends at once"
    if 0 < line.random_pct < 100:
        yield f"-rs{line.random_pct}: {line.random_pct} % of the I/Os are random, the others in a row"
    if line.clock_seed:
        yield "-z without a number: the seed is from the clock, so the same offsets cannot be drawn again"
    if line.buffers == "zero":
        yield "-Z: only zeros are written, which a disk may store for nothing"


def check_runnable(line: Arguments) -> None:
    """Refuse a line whose offsets nobody could draw again; VMFleet's own is left as it is.

    Raises
    ------
    UsageError
        For -z without a number.
    """
    if line.clock_seed:
        raise UsageError(
            "DiskSpd line: -z without a number seeds from the clock, so no other arm gets the same offsets; "
            "give it a number, e.g. -z1"
        )


def _unwritten(line: Arguments) -> str:
    if line.write_pct == 100:
        return "-c makes the file anew: writes may be the first to their blocks; nothing is prefilled"
    return "-c makes the file anew: reads may hit unwritten blocks, which need no disk; nothing is prefilled"
