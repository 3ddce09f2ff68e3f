"""`diskbook zone-affinity`: whether a workload sits in the zone that its disk answers from."""

import sys
from pathlib import Path
from typing import Any

import click

from diskbook.cli import complete
from diskbook.cli.options import examples
from diskbook.facts.errors import UsageError


@click.command(
    name="zone-affinity",
    epilog=examples(
        "diskbook zone-affinity --device /dev/sdc --zone 1 --learn zones.json",
        "diskbook zone-affinity --device /dev/sdc --near-ms 1.2 --far-ms 2.5 --json",
    ),
)
@click.option("--device", required=True, help="Block device or file that the workload uses, where it runs.")
@click.option("--zone", default="", help="Zone of the machine that reads.")
@click.option("--learn", metavar="FILE", help="Keep in FILE what reads from --zone take; no verdict.")
@click.option(
    "--baseline",
    metavar="FILE|RUN",
    shell_complete=complete.runs,
    help="FILE of --learn, or a run that read such a disk.",
)
@click.option("--disk", metavar="NAME", help="Name of the disk in that run, if it has several.")
@click.option("--near-ms", type=float, help="In place of a baseline: read latency from the nearest zone.")
@click.option("--far-ms", type=float, help="And from the nearest of the others.")
@click.option(
    "--via",
    default="",
    metavar="COMMAND",
    help="What runs fio, e.g. 'sudo', or 'ssh node2 sudo': that machine needs fio only.",
)
@click.option(
    "--seconds", type=click.FloatRange(0.2, 600), default=2.0, show_default=True, help="Of each of 5 reads."
)
@click.option(
    "--size-gib", type=float, default=1.0, show_default=True, help="Part of the device that is read."
)
@click.option("--state", type=click.Path(dir_okay=False), help="File that remembers the last clear verdict.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object in place of a sentence.")
def zone_affinity(
    zone: str, learn: str | None, state: str | None, as_json: bool, baseline: str | None, disk: str | None,
    near_ms: float | None, far_ms: float | None, **reads: Any,
) -> None:  # fmt: skip
    """Check whether a workload runs in the zone that its disk answers from.

    It only reads from the zone-redundant disk.

    First, at a calm time, learn the disk from a machine in each zone (where it is not shared, one after
    another, as it moves):

    \b
    for n in 1 2 3; do
      diskbook zone-affinity --via "ssh node$n sudo" --device /dev/sdc --zone $n --learn zones.json
    done

    Then have cron or a timer look from where the workload runs. Keep the state on one machine, or on the
    volume that moves with the workload. A move is reported once:

    \b
    diskbook zone-affinity --via "ssh $owner sudo" --device /dev/sdc \\
      --baseline zones.json --state state.json

    It reads 4 KiB at a time, one outstanding, at most 100 per second, while the workload runs. A disk on its
    cap answers late from everywhere. Far beyond the difference of zones, that is "not clear". Short of it,
    it looks like a remote zone. So act on the second look in a row.

    Exit status: 0 in the nearest zone, 10 in a remote one, 11 when that is not clear (not remembered). 1
    when nothing could be measured or written, 2 when the command was wrong. With --learn: 0 when the zone
    was learned. As a check of Nagios, with 1 for a warning and 3 for unknown:

    \b
    diskbook zone-affinity ... || exit $(($? == 10 ? 1 : 3))
    """
    from diskbook.zone_affinity import (
        baseline as zone_affinity_baseline,
        probe as zone_affinity_probe,
        verdict,
    )

    probe, given = zone_affinity_probe.Probe(**reads), (baseline, disk, near_ms, far_ms)
    outcome: verdict.Finding | verdict.Lesson
    if learn is None:
        known = zone_affinity_baseline.given(*given)
        outcome = verdict.look(probe, known, zone, Path(state) if state else None)
    elif state or any(value is not None for value in given):
        raise UsageError("--learn makes a baseline; leave out --state and the baseline")
    else:
        outcome = verdict.learn(probe, zone, Path(learn))
    click.echo(outcome.as_json if as_json else outcome.line)
    sys.exit(outcome.exit_code)
