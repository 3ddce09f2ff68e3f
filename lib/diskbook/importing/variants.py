"""Options that differ between results that would pass for repeats of one load: they are different loads.

A tool's output repeats what it was told. Where two results of one arm and load differ in an option that can
change what is measured, their loads get the option in their names: "randwrite-4k-qd1-max-open-zones-3".
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from diskbook.importing.pairing import Entry
from diskbook.tools.fio import options as fio_options
from diskbook.tools.record import CACHED, Measurement

# Told elsewhere (target, load, names), or of no weight for what is measured.
_IGNORED = re.compile(
    r"filename\w*|directory|uri|rbdname|hostname|name|description|output\w*|write_\w+_log|log_\w+|per_job_logs|\w*seed"
    r"|randrepeat|allrandrepeat|group_reporting|time_based|runtime|timeout|ramp_time|size|filesize|numjobs|iodepth|new_group"
    r"|status_interval|eta\w*|startdelay|stonewall|wait_for_previous|exitall\w*|disk_util|aux_path|opendir|thread"
    r"|percentile_list|\w+_percentiles|unique_filename|filename_format|loops|nrfiles|offset|create_\w+|fallocate"
    r"|overwrite|invalidate|unlink\w*|rwmix\w+|rate_iops|gtod_\w+|disable_\w+|clocksource|steadystate\w*|ss|ss_\w+"
)
_ALIASES = {"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange"}
_OFF = ("", "0", "none", "false", "no")


def of_results(entries: Sequence[Entry], keys: Sequence[tuple[object, ...]]) -> list[dict[str, str]]:
    """Options of each result by which it differs from another of its arm and load; keys are of the loads."""
    own = [_options(entry.measurement) for entry in entries]
    cells: dict[tuple[object, ...], list[int]] = {}
    for place, (entry, key) in enumerate(zip(entries, keys, strict=True)):
        cells.setdefault((entry.arm, *key), []).append(place)
    differing: dict[tuple[object, ...], set[str]] = {}
    for (_, *rest), places in cells.items():
        differing.setdefault(tuple(rest), set()).update(_differing([own[place] for place in places]))
    return [
        {name: options.get(name, "") for name in sorted(differing[key])}
        for options, key in zip(own, keys, strict=True)
    ]


def _differing(repeated: Iterable[Mapping[str, str]]) -> set[str]:
    """Names of options that do not have one value; of a result that repeats none nothing is known."""
    known = [options for options in repeated if options]
    names = set().union(*known) if known else set()
    return {name for name in names if len({options.get(name, "") for options in known}) > 1}


def _options(measurement: Measurement) -> dict[str, str]:
    """Options that matter, alike where they mean the same; those that are off are left out."""
    options = {}
    for name, value in measurement.options.items():
        key = _ALIASES.get(name.lower(), name.lower()).replace("-", "_")
        text = value.strip().lower()
        size = fio_options.size_bytes(text)
        if not _IGNORED.fullmatch(key) and text not in _OFF:
            options[key] = str(size) if size is not None else text
    if CACHED in measurement.flags:
        options = {name: value for name, value in options.items() if name not in ("direct", "buffered")}
    return options


def words(options: Mapping[str, str]) -> str:
    """Options as part of a load's name: "max-open-zones-3"; where all are off they stand as "no-direct"."""
    is_any_on = any(options.values())
    parts = (
        f"{name}-{value}" if value else f"no-{name}"
        for name, value in options.items()
        if value or not is_any_on
    )
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts)).strip("-")
