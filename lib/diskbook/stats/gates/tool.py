"""Gates on the tool: were both arms measured by one version, and is the lateness of a held rate the disk's?

A tool whose releases count differently (`Tool.releases`) is never pooled over them. On the emulator another
tool may stand in for it, so a difference between the two is none.

A held rate is offered by jobs of one I/O each (`tools.fio.held_rate`). Two things make the generator late
rather than the disk. With few jobs an I/O that is slow by itself keeps its job's next one waiting. And what
a stall held back is sent one after another in each job.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from diskbook.design import held_rate
from diskbook.design.vocabulary import Provenance, Verdict
from diskbook.facts.nan_equal import NanEqual
from diskbook.facts.units import percent
from diskbook.stats.gates import Cell, Gate, failed, not_assessable, passed
from diskbook.tools import registry

TOOL = "tool"


def tool_gate(arms: Sequence[str], cells: Sequence[Cell], provenance: str) -> Gate:
    """Each cell must be of one version of a tool, and both arms of the same one; the gravest finding counts.

    - `arms`, `cells`: names, and rows of `design.cell_checks` (`tools`: versions met in the cell), of both
      cells.
    - `provenance`: of the run, or of several joined by "+".
    """
    by_arm = [tuple(cell["tools"]) for cell in cells]
    emulated = Provenance.EMULATED in provenance
    findings = [
        _pooled(arm, versions) for arm, versions in zip(arms, by_arm, strict=True) if len(versions) > 1
    ]
    pairs = product(by_arm[0], by_arm[1])
    findings += [_differing(version, other, emulated) for version, other in pairs if version != other]
    if findings:
        return min(findings, key=lambda gate: gate.verdict is None)
    if not all(by_arm):
        return not_assessable(TOOL, "the version of the tool is not known for every trial")
    return passed(TOOL, f"every trial was measured by {by_arm[0][0]}")


def _pooled(arm: str, versions: Sequence[str]) -> Gate:
    cause = f"the trials of {arm} are of {' and '.join(versions)}"
    remedy = "compare trials of one version: measure again with one"
    return failed(
        TOOL, cause, remedy, None if all(_alike(version) for version in versions) else Verdict.INVALID
    )


def _differing(version: str, base_version: str, emulated: bool) -> Gate:
    tools = [registry.of_version(name) for name in (version, base_version)]
    played = next((tool for tool in tools if tool and tool.releases.emulated_by), None)
    if emulated and played:
        by = played.releases.emulated_by
        cause = f"the emulated {played.title} is {by}: no difference between tools can be measured here"
        return failed(TOOL, cause, "measure on Azure or on hosts of your own")
    if tools[0] is tools[1] and not _alike(version):
        cause = f"the arms were measured by {version} and {base_version}, whose releases count differently"
        return failed(TOOL, cause, "measure both with one release")
    cause = f"the arms were measured by {version} and {base_version}"
    cause += ", and the ratio holds the difference between these as well"
    remedy = "measure both arms with one release of one tool"
    return failed(TOOL, cause, remedy, None)


def _alike(version: str) -> bool:
    """Whether the releases of this version's tool count alike; a tool that is not named is taken for such."""
    tool = registry.of_version(version)
    return tool is None or tool.releases.alike


GENERATOR = "generator"
PART_OF_HALF = 0.25
"""How far the generator may have moved a ratio, as a part of the half-width of its interval. An interval that
is off by so much covers 94.3 % in place of 95."""
STEEP = 2.5
"""Rise of latencies around the 99th percentile from which its ratio is refused. Simulated: where an
arm rises 12 times 91 % are covered, 3.2 times 88 to 93 %, and up to 1.8 times 92 % and more."""
_REMEDY = "let more I/Os be outstanding (queue_depth), each of which is a job of its own"
_UNTOLD = (
    "latencies count from when an I/O was sent, and leave out what the generator held back during a stall: "
    "the ratio is wrong where one arm stalls more (so it is with all tools but fio, with older versions, and "
    "with reads beside writes)"
)
_AGAIN = (
    "measure again with fio, which offers a rate by jobs of one I/O each; on Windows, where DiskSpd "
    "measures, compare latencies at queue depth 1 without a rate, or rates"
)
_MAY_ADD = {"lat_mean_ms": "mean", "lat_p99_ms": "p99", "lat_p999_ms": "p99"}
"""What is known of the generator's own queue, by metric; a median has none."""


@dataclass(frozen=True, eq=False)
class Offered(NanEqual):
    """How a cell's rate was offered.

    - `period_ms`: how long a job has for each of its I/Os; NaN where lateness is not told
      (`tables.held_rate.is_told`).
    - `slow_ms`: what 99.9 % of the single I/Os of the arm are faster than (closed loop at depth 1, of the
      same direction and block size); of the held I/Os where there are no single ones. Median over trials.
    - `rise`: 99.5th percentile over the 98.5th from the intended start, geometric mean over trials.
    - `may_add`: by metric, the mean over trials of the log of the latency over the least that it can have
      been.
    """

    period_ms: float
    slow_ms: float
    rise: float
    may_add: Mapping[str, float]


Cells = Mapping[tuple[str, str], Offered]
"""By arm and workload."""


def offered(rows: pd.DataFrame) -> dict[tuple[str, str], Offered]:
    """Collect how each held rate was offered, from `totals.measured_rows`."""
    if "rate_offered" not in rows:
        return {}
    cells = {}
    for (arm, workload), part in rows[rows["rate_offered"].notna()].groupby(["arm", "workload"]):
        is_told = held_rate.is_told(part).all()
        cells[str(arm), str(workload)] = (
            _told(rows, part) if is_told else Offered(math.nan, math.nan, math.nan, {})
        )
    return cells


def _told(rows: pd.DataFrame, part: pd.DataFrame) -> Offered:
    """Collect how the rate of one cell was offered, all of whose trials tell of lateness."""
    first = part.iloc[0]
    kind = ["arm", "direction", "block_size_bytes"]
    alike = (rows[kind] == first[kind]).all(axis=1)
    single = rows[alike & (rows["outstanding"] == 1) & rows["rate_offered"].isna()]
    return Offered(
        period_ms=float(1000 * first["outstanding"] / first["rate_offered"]),
        slow_ms=float((single if len(single) else part)["lat_p999_ms"].median()),
        rise=float(np.exp(np.log(part["lat_p99_rise"]).mean())),
        may_add={
            metric: float(np.log(part[f"lat_{name}_intended_ms"] / part[f"lat_{name}_least_ms"]).mean())
            for metric, name in _MAY_ADD.items()
        },
    )


def generator_gate(arms: Sequence[str], workload: str, metric: str, cells: Cells, half: float) -> Gate:
    """Lateness must be the disk's: jobs that suffice for single I/Os, and a queue that moves no ratio.

    Warns where no lateness is told: those latencies, and their ratio, leave out what a stall held back.
    Refuses a ratio of 99th percentiles that stalls make jump.

    - `arms`, `workload`, `metric`: arm and base arm, the load and the latency compared.
    - `cells`: `offered` of the run.
    - `half`: half-width of the interval of the ratio, in logs; of an equivalence margin where there is none.
    """
    both = [cells[arm, workload] for arm in arms if (arm, workload) in cells]
    if len(both) < len(arms) or not metric.startswith("lat"):
        return passed(GENERATOR, "no latency of a held rate is compared")
    if any(math.isnan(cell.period_ms) for cell in both):
        return not_assessable(GENERATOR, _UNTOLD, _AGAIN)
    slower = max(both, key=lambda cell: cell.slow_ms)
    if not all(cell.slow_ms <= cell.period_ms for cell in both):
        cause = (
            f"each job had {slower.period_ms:.3g} ms for an I/O, and one in a thousand took over "
            f"{slower.slow_ms:.3g} ms, so that the generator made the next one late"
        )
        return not_assessable(GENERATOR, cause, _REMEDY, Verdict.INVALID)
    return _gate_of_stalls(both, metric, half)


def _gate_of_stalls(both: Sequence[Offered], metric: str, half: float) -> Gate:
    """Judge what stalls do to a ratio, where the jobs suffice for single I/Os."""
    rise = max(cell.rise for cell in both)
    if metric == "lat_p99_ms" and rise > STEEP:
        cause = (
            f"the 99th percentile lies where ordinary I/Os end and stalls begin (from 98.5 to 99.5 % they "
            f"rise {rise:.2g} times), so it jumps between trials and its interval covers too little"
        )
        return not_assessable(
            GENERATOR, cause, "compare means, or the 99.9th percentile", Verdict.INCONCLUSIVE
        )
    first, second = (cell.may_add.get(metric, 0.0) for cell in both)
    words = f"by about {percent(math.expm1(abs(first - second)), '.2g')}"
    if not abs(first - second) <= PART_OF_HALF * half:
        cause = (
            f"I/Os that stalls held back waited for each other in their jobs: that moves the ratio {words}"
        )
        return not_assessable(GENERATOR, cause, _REMEDY, Verdict.INVALID)
    return passed(GENERATOR, f"the generator's own queue moves the ratio {words}; arrivals were linear")
