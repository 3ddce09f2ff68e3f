"""Inspect a new machine over SSH: whether it is set up, its system and tool, round trips to other zones."""

import json
import shlex
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paramiko

from diskbook.cloud.azure import private
from diskbook.design.model import Machine
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import span
from diskbook.hosts import powershell, windows_setup
from diskbook.hosts.ssh import Connection, Output, UnreachableError
from diskbook.tools import registry
from diskbook.tools.protocol import Tool

SETUP_S = 840  # cloud-init installs packages
TIMED_OUT = 124  # status of the program timeout
PROBES = 9

# Times the handshake of TCP with port 22, which the machines' network lets in among themselves.
_PROBE = """\
import json, socket, sys, time
results = []
for place in sys.argv[2:]:
    address, port = place.rsplit(":", 1)
    times = []
    for _ in range(int(sys.argv[1])):
        began = time.perf_counter()
        try:
            socket.create_connection((address, int(port)), 5).close()
        except OSError:
            continue
        times.append(time.perf_counter() - began)
    results.append(times)
print(json.dumps(results))
"""


def inspect_machine(folder: Path, spec: Machine, machines: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Sign in to a machine, wait until it is set up, and ask what only it can tell.

    - `spec`: the machine as the scenario asks for it.
    - `machines`: entries of the manifest of all machines of its replicate, by scenario name. `reached_at` is
      where other machines reach one.

    Returns `kernel`, `tool_version` and `round_trips`: the way to each machine of another zone and back, with
    `to`, both physical (else logical) zones, `median_ms`, `min_ms` and `n`. Where no probe got through, and
    on a machine without Python, n is 0 and there are no times. Windows machines are not asked.

    Raises DiskbookError when it cannot be reached, or has no tool.
    """
    host = private.host_of(machines[spec.name], folder)
    tool = registry.TOOLS[spec.tools[0]]
    with Connection(host) as connection:
        if spec.os == "windows":
            return {**_windows_software(connection, tool), "round_trips": []}
        software = _linux_software(connection, tool)  # first: it waits until the machine is set up
        return {**software, "round_trips": _round_trips(connection, spec.name, machines)}


def _windows_software(connection: Connection, tool: Tool) -> dict[str, str]:
    facts = powershell.encoded(windows_setup.facts(tool))
    lines = connection.check(facts, timeout_s=120)
    system, version = _two_lines(lines, connection.host.name)
    return {"kernel": system, "tool_version": tool.version(version)}


def _linux_software(connection: Connection, tool: Tool) -> dict[str, str]:
    # cloud-init installs the tools on Azure; the emulated machine has neither need nor cloud-init.
    wait = (
        f"if command -v cloud-init >/dev/null; then timeout {SETUP_S} cloud-init status --wait >/dev/null; "
        f"[ $? = {TIMED_OUT} ] && exit {TIMED_OUT}; fi"
    )
    output = connection.run(f"{wait}; uname -sr && {tool.install.version}", timeout_s=SETUP_S + 60)
    if output.status != 0:
        raise DiskbookError(_not_set_up(connection.host.name, output))
    kernel, version = _two_lines(output.stdout, connection.host.name)
    return {"kernel": kernel, "tool_version": tool.version(version)}


def _not_set_up(name: str, output: Output) -> str:
    """Say what cloud-init did not do, and where it tells why."""
    look = (
        "'cloud-init status --long' and /var/log/cloud-init-output.log there say why: keep the machine for a "
        "look with --debug-minutes 10"
    )
    if output.status == TIMED_OUT:
        return f"machine {name}: cloud-init has not finished after {span(SETUP_S)}; {look}"
    reason = output.stderr.decode(errors="replace").strip() or f"status {output.status}"
    return (
        f"machine {name} does not have the tool that cloud-init installs ({reason}): the network must let it "
        f"out to its system's package servers; {look}"
    )


def advice(error: UnreachableError, ssh_source: str, *, private: bool) -> str:
    """Say what keeps a new machine from being reached, the likeliest first.

    - `error`: its cause tells a machine that is silent from one that refuses.
    - `ssh_source`: from where the machines let in SSH.
    - `private`: whether the machines have no public address.
    """
    keep = "keep it for a look with --debug-minutes 10"
    if isinstance(error.__cause__, paramiko.AuthenticationException):
        return f"Its sshd refuses the run's key: cloud-init has not finished or failed; {keep}"
    if private:
        return f"The way to it is that of [network]; cloud-init may also not have finished: {keep}"
    return (
        f"It lets in SSH from {ssh_source} alone: with a VPN or a second egress address, name the address "
        "that Azure sees, --ssh-source. Else your network may block outbound port 22: 'diskbook doctor "
        "--cloud azure --try-ssh HOST' tries that. Else cloud-init has not finished: " + keep
    )


def _two_lines(output: bytes, name: str) -> tuple[str, str]:
    lines = output.decode(errors="replace").splitlines()
    if len(lines) < 2:
        raise DiskbookError(f"machine {name} does not say which system and tool it has; it said {lines}")
    return lines[0].strip(), lines[1].strip()


def _round_trips(
    connection: Connection, name: str, machines: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    here = machines[name]["logical_zone"]
    others = [other for other, row in machines.items() if row["logical_zone"] != here]
    times = _probe(connection, [machines[other]["reached_at"] for other in others])
    return [
        {
            "to": other,
            "from_zone": _zone(machines[name]),
            "to_zone": _zone(machines[other]),
            **_summary(seen),
        }
        for other, seen in zip(others, times, strict=True)
    ]


def _zone(row: Mapping[str, Any]) -> str | None:
    return row.get("physical_zone") or row["logical_zone"]


def _probe(connection: Connection, places: list[str]) -> list[list[float]]:
    """Times in s of the handshakes with each place that got through."""
    if not places:
        return []
    command = ["python3", "-c", _PROBE, str(PROBES), *places]
    output = connection.run(shlex.join(command), timeout_s=60 + 5 * PROBES * len(places))
    try:
        times: list[list[float]] = json.loads(output.stdout)
    except ValueError:
        return [[] for _ in places]
    return times


def _summary(times_s: list[float]) -> dict[str, Any]:
    if not times_s:
        return {"median_ms": None, "min_ms": None, "n": 0}
    return {
        "median_ms": round(statistics.median(times_s) * 1000, 4),
        "min_ms": round(min(times_s) * 1000, 4),
        "n": len(times_s),
    }
