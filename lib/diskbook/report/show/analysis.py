"""What a notebook shows of an analysed run: each function takes the analysis and returns HTML."""

from collections.abc import Mapping, Sequence

from diskbook.report import figures
from diskbook.report.show import caveats, conformance, facts, first_screen, html, sentences, tables
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import Html, escaped, folded, table
from diskbook.stats.diagnosis import Diagnosis, Finding


def section(findings: Sequence[Finding], labels: Mapping[str, str], words: Mapping[str, str]) -> Html:
    """Count the cells of each verdict; folded, each cell with what holds it and what helps.

    - `findings`: from `throttling.diagnosis.findings`.
    - `labels`, `words`: arms and workloads as text, by name.
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


def figure(picture: figures.Picture) -> Html:
    """Show a figure with its caption and its alt text."""
    return Html(figures.html(picture))


def screen(a: Analysed) -> Html:
    """Show the answer on one screen: question, both values with the change, arms, run and scope."""
    return first_screen.screen(a)


def sure(a: Analysed) -> Html:
    """Say in three lines how far the answer can be trusted."""
    return first_screen.sure(a)


def not_said(a: Analysed) -> Html:
    """Say in three lines what must not be concluded."""
    return first_screen.not_said(a)


def headline_table(a: Analysed) -> Html:
    """Show headline comparisons and controls with both values, and why any of them is refused."""
    return first_screen.table_of_headlines(a)


def doubts(a: Analysed) -> Html:
    """Say what speaks against the numbers of any measurement; nothing where nothing does."""
    if not a.compared.doubts:
        return Html("")
    return caveats.section(a.compared.doubts, facts.n_trials(a), a.labels, a.words)


def comparisons(a: Analysed) -> Html:
    """Show every comparison with its ratio in both scopes and its verdict; reasons are footnotes."""
    return tables.comparisons(a.comparisons, a.words, a.labels)


def strata(a: Analysed) -> Html:
    """Show each stratum apart: replicates of one VM zone and nearest zone are never pooled with others."""
    return tables.strata(a.compared.strata, a.labels, a.words)


def gates(a: Analysed) -> Html:
    """Show how often each gate passed, and every one that did not, with cause and remedy."""
    return tables.gates(a.gates, a.labels, a.words)


def protocol(a: Analysed) -> Html:
    """Show which comparisons are closed by the protocol, and what the open ones lack, with remedies."""
    return conformance.section(a.protocol, a.labels, a.words)


def cells(a: Analysed) -> Html:
    """Show every cell with its label: below cap, or capped and by which limit, with the evidence."""
    return tables.cells(a.cells, a.labels, a.words)


def capped(a: Analysed) -> Html:
    """Say why comparisons of capped cells have no latency ratio."""
    return tables.capped(a.comparisons, a.scenario)


def throttled(a: Analysed, findings: Sequence[Finding]) -> Html:
    """Count the cells that a limit holds; folded, each cell with which limit, and what helps."""
    return section(findings, a.labels, a.words)


def percentiles(a: Analysed) -> Html:
    """Show percentiles of cells below caps, of a typical trial and of all I/Os."""
    return tables.percentiles(a.percentiles, a.cells, a.labels, a.words)


def percentile_ratios(a: Analysed) -> Html:
    """Show ratios of percentiles with paired intervals, one row a comparison."""
    return tables.percentile_ratios(a.percentile_ratios, a.labels, a.words)


def published(a: Analysed) -> Html:
    """Show published figures beside measured ones; what each supports is a footnote."""
    return tables.published(a.published, a.labels, a.words)


def over_time(a: Analysed) -> Html:
    """Say how rates and latencies moved within trials and over the run."""
    return tables.bullets(facts.sentences(a.trials, a.tables.series, a.labels, a.words))


def more_measuring(a: Analysed) -> Html:
    """Say what more blocks, or more replicates, would bring; and another replicate, with its cost."""
    return tables.bullets(sentences.more_measuring(a.comparisons, a.scenario, a.replicate_cost))


def findings(a: Analysed) -> Html:
    """Show what the scenario's checks showed."""
    return html.table(facts.findings(a), f"Checks ({a.provenance})")


def operations(a: Analysed) -> Html:
    """Show the times of control-plane operations."""
    caption = f"Control-plane operations, medians in seconds ({a.provenance})"
    return html.table(facts.operations(a), caption)


def attachments(a: Analysed) -> Html:
    """Show how long ago, and how often, each arm's disk was attached when it was measured."""
    frame, settle_s = facts.attachments(a), a.scenario.design.settle_s
    if frame.empty:
        return Html("<p>No disk was attached in this run, or nothing of it was recorded.</p>")
    settled = f"{settle_s:g} s to settle" if settle_s else "no time to settle"
    return html.table(frame, f"From attach to trial, with {settled} after an attach ({a.provenance})")


def environment(a: Analysed) -> Html:
    """Show versions, machines, zones, disks and dates."""
    return html.folded("Run, machines, disks and versions", html.table(facts.environment(a), "Environment"))
