"""Performance counters of a cluster's nodes, before and after a trial: paths read, totals by trial. Pure.

    \\r1-n1\network interface(hyper-v network adapter)\bytes sent/sec

Windows writes the paths of samples in small letters, with the computer in front.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

FILL = r"ReFS\Fast Tier Data Fill Ratio"
"""Share of a volume's mirror tier that holds data, in 1/10,000, at that moment: no running total. No counter
of Windows, but a field of what FSCTL_GET_REFS_VOLUME_DATA answers (REFS_VOLUME_DATA_BUFFER,
windows-driver-docs-ddi)."""
SLOW_TIER = r"ReFS\Allocation of Data Clusters on Slow Tier/sec"
"""Clusters that the mirror had no room for: above zero where ReFS writes to parity itself
("Mirror-accelerated parity", windowsserverdocs)."""
# Bytes on the wire a byte written or read prove copies and local reads.
NAMES = (
    r"Cluster CSVFS\Reads/sec",
    r"Cluster CSVFS\Writes/sec",
    r"Cluster CSVFS\Read Bytes/sec",
    r"Cluster CSVFS\Write Bytes/sec",
    r"SMB Client Shares\Read Bytes/sec",
    r"SMB Client Shares\Write Bytes/sec",
    r"Network Interface\Bytes Sent/sec",
    r"Network Interface\Bytes Received/sec",
    SLOW_TIER,
    FILL,
)
_SPELT = {name.lower(): name for name in NAMES}
_PATH = re.compile(
    r"(?:\\\\[^\\]+)?\\(?P<object>[^\\(]+)(?:\((?P<instance>.*)\))?\\(?P<counter>[^\\]+)", re.DOTALL
)

KIND = "counters"
"""Kind of the raw file that has them: {"before": snapshot, "after": snapshot}."""
Snapshot = Mapping[str, Mapping[str, Any]]
"""Name of a machine to what its step `counters` answered."""


def path(name: str) -> str:
    """Return the path that asks Windows for all instances of a counter of `NAMES`."""
    kind, _, counter = name.partition("\\")
    return rf"\{kind}(*)\{counter}"


def split(path: str) -> tuple[str, str]:
    """Return counter, spelt as in `NAMES`, and instance of a sample's path, "" where it has none.

    Raises ValueError when it is not a path of a counter.
    """
    match = _PATH.fullmatch(path)
    if match is None:
        raise ValueError(f"'{path}' is not a path of a performance counter")
    name = f"{match['object']}\\{match['counter']}"
    return _SPELT.get(name.lower(), name), match["instance"] or ""


def rows(run: str, trial: str, before: Snapshot, after: Snapshot) -> Iterator[dict[str, Any]]:
    """Yield the rows of `schema.COUNTERS` of a trial; a total that one side lacks is None there."""
    first, second = _totals(before), _totals(after)
    for machine, counter, instance in sorted(first.keys() | second.keys()):
        key = machine, counter, instance
        names = {"run": run, "trial": trial, "machine": machine, "counter": counter, "instance": instance}
        yield {**names, "before": first.get(key), "after": second.get(key)}


def _totals(snapshot: Snapshot) -> dict[tuple[str, str, str], float]:
    return {
        (machine, *split(sample["path"])): float(sample["raw"])
        for machine, answer in snapshot.items()
        for sample in answer["samples"]
    }
