"""How many findings a run's comparisons are: metrics of one closed-loop cell say one thing."""

import pandas as pd

from diskbook.design.vocabulary import Verdict
from diskbook.report.show import sentences
from diskbook.report.show.analysed import Analysed


def counted(a: Analysed) -> list[str]:
    """Count comparisons by finding: all metrics of one closed-loop cell are one finding."""
    rows = sentences.chosen(a.comparisons)
    held = {item.name for item in a.scenario.workload if item.rate is not None}
    of_cell = rows[~rows["workload"].isin(held)].drop_duplicates(["arm", "base_arm", "workload"])
    others = rows[rows["workload"].isin(held)]
    counted = pd.concat([of_cell, others])
    verdicts = counted["verdict"].map(lambda words: str(Verdict.of(words))).value_counts()
    listed = ", ".join(f"{verdict} {number}" for verdict, number in verdicts.items())
    double = len(rows) - len(counted)
    why = (
        f" ({double} of the comparisons are of a cell that is counted already: in a closed loop latency is "
        "outstanding / IOPS, and MB/s are IOPS x block size)"
    )
    return [f"{len(rows)} comparisons are {len(counted)} findings{why * bool(double)}: {listed}"]
