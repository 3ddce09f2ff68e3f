"""A fleet on emulated volumes, measured as the step `fleet` does: its rate, and how alike machines fare."""

import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath

from checks.bench_emulator_rig import WORKING_SET_MIB
from diskbook.design.diskspd_arguments import parse
from diskbook.facts.units import MIB, MS_PER_S
from diskbook_emulator import fleet
from diskbook_emulator.disk import Server
from diskbook_emulator.fleet import Member
from diskbook_emulator.windows_diskspd import Disk


def fleet_values(folder: Path, servers: Sequence[Server], line: str, instances: int) -> list[float]:
    """Run a line of DiskSpd on as many machines of each volume, which share its prefilled part.

    Returns IOPS of all, coefficient of variation between machines, share of the time that all measured at
    once, and by how many seconds their starts, and their ends, lie apart.
    """
    asked = parse(line)
    members = [
        Member(f"vm-{volume}-{number}", str(volume), "n", PureWindowsPath("f"), Disk(server.uri(), _SIZE))
        for volume, server in enumerate(servers)
        for number in range(instances)
    ]
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        (place / fleet.JOBS).write_text(fleet.job_file(asked, members, 1), encoding="utf-8")
        command = fleet.command("fio")
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        outcomes = fleet.read(place, done.stdout + done.stderr, asked, members).values()
    rates = [sum(part.iops for part in outcome.measured.total.directions.values()) for outcome in outcomes]
    starts, ends = ([getattr(outcome, at) / MS_PER_S for outcome in outcomes] for at in _TIMES)
    window = (min(ends) - max(starts)) / asked.duration_s
    spread = statistics.stdev(rates) / statistics.mean(rates)
    return [sum(rates), spread, window, max(starts) - min(starts), max(ends) - min(ends)]


_SIZE = WORKING_SET_MIB * MIB
_TIMES = ("started_ms", "ended_ms")
