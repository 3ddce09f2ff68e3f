"""`diskbook compare`: several runs at once."""

import sys
from pathlib import Path

import click

from diskbook.cli import complete
from diskbook.cli.options import examples, show_json
from diskbook.facts.errors import UsageError
from diskbook.facts.units import parse_percent


@click.command(
    epilog=examples(
        "diskbook compare sample-zone-disks my-run",
        "diskbook compare --json sample-zone-disks my-run",
        "diskbook compare sample-zone-disks my-run --fail-over 5% --bench-json bench.json",
        "diskbook compare --scenario zone-disks",
    )
)
@click.argument("runs", nargs=-1, metavar="[RUN RUN...]", shell_complete=complete.runs)
@click.option(
    "--scenario", metavar="NAME", shell_complete=complete.scenarios, help="All runs of a scenario instead."
)
@click.option("--runs", "place", metavar="DIR or STORE", help="With --scenario: where its runs are.")
@click.option("--fail-over", metavar="PERCENT", help="End with 3 when one is worse by more, e.g. 5%.")
@click.option(
    "--bench-json",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write latencies for github-action-benchmark.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print what changed, intervals, and footnotes as well.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--md", "as_markdown", is_flag=True, help="Print Markdown.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the numbers as CSV.")
def compare(
    runs: tuple[str, ...],
    scenario: str | None,
    place: str | None,
    fail_over: str | None,
    bench_json: Path | None,
    verbose: bool,
    as_json: bool,
    as_markdown: bool,
    as_csv: bool,
) -> None:
    """Compare runs with the first run.

    Prints one line per comparison. Its columns are the change between the arms in the first run and in the
    other, the change between the runs, p, and n. ~ means no detectable difference.

    With --fail-over 5% an interval is worse if it lies wholly beyond 5 % (latency up, rate down). Exit
    status: 0 when none is worse, 3 when one is, 4 when a headline has no result, 1 and 2 for errors.

    With --scenario NAME it reads all runs of the scenario, from the catalogue if that is current. It prints
    one row per comparison: the range of the ratio, the runs' verdicts and their spread. It pools nothing.
    """
    if as_json + as_markdown + as_csv > 1:
        raise UsageError("--json, --md and --csv are one choice: give one of them")
    if scenario is not None:
        if runs or fail_over is not None or bench_json is not None:
            raise UsageError(
                "--scenario takes all runs there are: leave out RUN, --fail-over and --bench-json"
            )
        _over_runs(scenario, place, as_json, as_markdown, as_csv)
        return
    if place is not None:
        raise UsageError("--runs goes with --scenario; a RUN elsewhere is named by its path or address")
    from diskbook.cli import document_of
    from diskbook.report.comparing import compared, tables

    share = None if fail_over is None else parse_percent(fail_over, "--fail-over", most=1000.0)
    beside = compared.compare(runs)
    outcome = None if share is None else tables.judge(beside, share)
    if bench_json is not None:
        click.echo(tables.write_bench_json(beside, bench_json), err=True)
    if as_json:
        show_json(document_of.compare(beside, outcome))
    elif as_csv:
        click.echo(tables.csv(beside), nl=False)
        if outcome:
            click.echo(outcome.words, err=True)
    else:
        write = tables.markdown if as_markdown else tables.text if verbose else tables.brief
        click.echo(write(beside, outcome))
    if outcome:
        sys.exit(outcome.exit_code)


def _over_runs(scenario: str, place: str | None, as_json: bool, as_markdown: bool, as_csv: bool) -> None:
    """Compare a scenario over all its runs."""
    from diskbook.cli import document_of
    from diskbook.report.comparing import over_runs

    over = over_runs.compare(scenario, place)
    if as_json:
        show_json(document_of.compare_runs(over))
        return
    write = over_runs.markdown if as_markdown else over_runs.csv if as_csv else over_runs.text
    click.echo(write(over), nl=not as_csv)
