"""`compare --bench-json`: latencies for github-action-benchmark, as a list of `customSmallerIsBetter`."""

import json
import math
from pathlib import Path

from diskbook.facts.errors import UsageError
from diskbook.facts.files import write_atomic
from diskbook.report.comparing.compared import Beside
from diskbook.report.comparing.pairs import label

UNIT = "times the first run"


def write(beside: Beside, path: Path) -> str:
    """Write the ratio of ratios of each latency, and say what was left out.

    A value is this run's change between the arms over the first run's: 1.02 is 2 % slower. Rates are left
    out, since more of them is better, and so is what has no ratio.

    Raises UsageError when there are not two runs, whose names would tell the values apart.
    """
    if len(beside.runs) != 2:
        raise UsageError("--bench-json takes two runs: the base, and the one that is judged")
    latencies = [pair for pair in beside.pairs if pair.key[-1].startswith("lat")]
    rows = []
    for pair in latencies:
        ratio, low, high = pair.ratio
        if math.isnan(ratio):
            continue
        half = "" if math.isnan(low) else f"± {(high - low) / 2:.4g}"
        extra = "; ".join([pair.words or "no verdict", *pair.notes])
        rows.append(
            {
                "name": label(pair.key),
                "unit": UNIT,
                "value": float(f"{ratio:.6g}"),
                "range": half,
                "extra": extra,
            }
        )
    write_atomic(path, json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    rates, refused = len(beside.pairs) - len(latencies), len(latencies) - len(rows)
    return (
        f"{path}: {len(rows)} latencies; left out: {rates} rates, of which more is better, and {refused} "
        "latencies without a ratio"
    )
