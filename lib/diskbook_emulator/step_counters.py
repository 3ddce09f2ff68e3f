"""Performance counters of emulated machines: running totals of what their volumes did."""

import time
from collections.abc import Iterator, Sequence

from diskbook_emulator.step_call import Call, Json, StepError

ADAPTER = "microsoft hyper-v network adapter"
RATE = "RateOfCountsPerSecond64"
TICKS = 10_000_000
"""Of Windows' clocks, a second."""
_FILETIME_EPOCH_S = 11_644_473_600  # from 1601 to 1970
_CLUSTER_BYTES = 64 * 1024  # of ReFS on cluster shared volumes
_READS, _WRITES, _READ_BYTES, _WRITE_BYTES, _VIA_READ, _VIA_WRITE, _SENT, _RECEIVED = range(8)
_OF_VOLUME = {
    r"\cluster csvfs(*)\reads/sec": _READS,
    r"\cluster csvfs(*)\writes/sec": _WRITES,
    r"\cluster csvfs(*)\read bytes/sec": _READ_BYTES,
    r"\cluster csvfs(*)\write bytes/sec": _WRITE_BYTES,
}
_OF_SHARES = {
    r"\smb client shares(*)\read bytes/sec": _VIA_READ,
    r"\smb client shares(*)\write bytes/sec": _VIA_WRITE,
}
_OF_NETWORK = {
    r"\network interface(*)\bytes sent/sec": _SENT,
    r"\network interface(*)\bytes received/sec": _RECEIVED,
}
_FILL = r"\refs(*)\fast tier data fill ratio"
_FILL_UNIT = 10_000  # of REFS_VOLUME_DATA_BUFFER
_SLOW_TIER = r"\refs(*)\allocation of data clusters on slow tier/sec"


def samples(call: Call, paths: Sequence[str]) -> list[Json]:
    """Read counters as Get-Counter does: names in small letters, all instances, sorted by path."""
    now = time.time()
    rows = [row for path in paths for row in _of_path(call, path)]
    clock = {
        "kind": RATE,
        "base": int(time.monotonic() * TICKS),
        "at_100ns": int((now + _FILETIME_EPOCH_S) * TICKS),
    }
    order = ("path", "instance", "raw", "base", "kind", "at_100ns")
    whole = [{**row, **clock} for row in sorted(rows, key=lambda row: str(row["path"]))]
    return [{name: row[name] for name in order} for row in whole]


def _of_path(call: Call, path: str) -> Iterator[Json]:
    for instance, raw in _totals(call, path.lower()):
        shown = path.lower().replace("(*)", f"({instance})")
        yield {"path": rf"\\{call.name.lower()}{shown}", "instance": instance, "raw": raw}


def _totals(call: Call, path: str) -> Iterator[tuple[str, int]]:
    """Instances of a counter and their totals."""
    counted = call.host.counted(call.vm_id)
    clustered = call.spaces.cluster_of(call.vm_id) is not None
    if path in _OF_NETWORK:
        yield ADAPTER, sum(int(totals[_OF_NETWORK[path]]) for totals in counted.values())
    elif path in _OF_VOLUME and clustered:
        for name, totals in sorted(counted.items()):
            yield name.lower(), int(totals[_OF_VOLUME[path]])
    elif path in _OF_SHARES and clustered:
        yield "_total", sum(int(totals[_OF_SHARES[path]]) for totals in counted.values())
    elif path == _SLOW_TIER:
        for name in sorted(counted):
            yield name.lower(), call.host.moved_to_parity(name) // _CLUSTER_BYTES
    elif path == _FILL:
        for name, fill in sorted(call.host.mirror_fill(call.vm_id).items()):
            yield name.lower(), round(_FILL_UNIT * fill)
    else:
        raise StepError("The specified object was not found on the computer.")
