"""Am I throttled, and by which limit: the findings of every cell as a table, folded, below their count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diskbook.report.show.html import Html, escaped, folded, table
from diskbook.stats.diagnosis import Diagnosis, Finding


def section(findings: Sequence[Finding], labels: Mapping[str, str], words: Mapping[str, str]) -> Html:
    """Count the cells of each verdict; folded, each cell with what holds it and what helps.

    Parameters
    ----------
    findings
        From `throttling.diagnosis.findings`.
    labels, words
        Arms and workloads in words, by name.
    """
    if not findings:
        return Html("<p>Nothing was measured yet.</p>")
    verdicts = [finding.verdict for finding in findings]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in Diagnosis if verdict in verdicts)
    rows = [
        {
            "Arm": labels.get(finding.arm, finding.arm),
            "Load": words.get(finding.workload, finding.workload),
            "Verdict": str(finding.verdict),
            "Why": finding.cause[:1].upper() + finding.cause[1:],
            "What helps": finding.remedy,
        }
        for finding in findings
    ]
    total = f"Of {len(findings)} cell{'s' * (len(findings) != 1)}: {counts}."
    return Html(f"<p>{escaped(total)}</p>{folded('Cell by cell', table(rows, 'What holds each cell'))}")
