"""Run a step of a cluster on a node of a replicate, and record it: what it changed, or why it failed."""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from diskbook.cloud.azure import requests
from diskbook.clusters.powershell import scripts, steps
from diskbook.facts import client
from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import write_atomic
from diskbook.facts.redact import HIDDEN, hide
from diskbook.hosts.ssh_windows import NoAnswer, WindowsConnection
from diskbook.measure.bench.rig import Rig

T = TypeVar("T")

AS_TASK = frozenset({"validate", "cluster", "enable", "volume", "place", "fleet"})
"""Steps that reach other nodes, and so run as the cluster's account."""
QUIET = frozenset({"counters", "fleet"})
"""Steps that run with every trial: what they answer is kept with it, so only their failures are recorded."""
LIMIT_S = {"prepare": 1800, "validate": 1800, "cluster": 900, "enable": 900, "volume": 900, "place": 300}
"""How long steps may take; features are installed, disks come one after the other, volumes are formatted."""
OTHERS_S = 120
RESTART_S = 900.0  # a node whose restart takes longer is not waited for
_ERRORS_S = 60.0  # a node that is going down may fail a step
_PAUSES_S = (0.3, 10.0)  # the first, and the longest, between two looks at a node that restarts


def name_of(rig: Rig, machine: str) -> str:
    """Return the name of a node, which is the machine's own name for itself."""
    return requests.computer_name(rig.replicate["machines"][machine]["host"]["name"])


def machine_of(rig: Rig, node: str) -> str:
    """Return the scenario's name of a node; Windows may write its name in capital letters.

    Raises DiskbookError when it is not a machine of the replicate.
    """
    for machine in rig.replicate["machines"]:
        if name_of(rig, machine).lower() == node.partition(".")[0].lower():
            return str(machine)
    raise DiskbookError(f"{node} is not a machine of replicate {rig.number}")


def run(
    rig: Rig,
    machine: str,
    step: str,
    request: steps.Request,
    *,
    clustered: bool = True,
    wait_s: int = 0,
    connection: WindowsConnection | None = None,
) -> steps.Answer:
    """Run a step on a machine, as the cluster's account where it reaches other nodes; record it.

    - `clustered`: whether there is a cluster; one server's own steps run by themselves.
    - `wait_s`: what the step may wait for of itself, on top of its time.
    - `connection`: another one than that of all steps, beside which this one runs.

    Raises StepFailed with the node's own sentence; it is recorded first.
    """
    limit_s = LIMIT_S.get(step, OTHERS_S) + wait_s
    outer: tuple[str, steps.Request] = step, request
    if clustered and step in AS_TASK:
        task = steps.as_task(step, request, ACCOUNT, password(rig.run.folder))
        outer = "task", task.model_copy(update={"wait_s": limit_s})
    return _recorded(rig, machine, step, outer, connection or rig.windows(machine), limit_s)


def prepare(rig: Rig, machine: str, request: steps.Prepare) -> steps.Answer:
    """Make a node ready, restarting it as often as that is due.

    Raises StepFailed with the node's own sentence, or when its restart does not end.
    """
    asked = request.model_copy(update={"restart": True})
    answer = run(rig, machine, "prepare", asked)
    began, (pause_s, longest_s) = time.monotonic(), _PAUSES_S
    while answer.state["restart_due"]:
        away_s = time.monotonic() - began
        if away_s > RESTART_S:
            raise steps.StepFailed(
                f"{name_of(rig, machine)}: a restart is still due {away_s:.0f} s after it was asked for"
            )
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, longest_s)
        try:
            # Nobody is to start or restart from outside what restarts of itself.
            with rig.new_connection(machine, recover=False) as connection:
                assert isinstance(connection, WindowsConnection)
                answer = _recorded(
                    rig, machine, "prepare", ("prepare", asked), connection, LIMIT_S["prepare"]
                )
        except DiskbookError as error:
            if away_s > (_ERRORS_S if isinstance(error, steps.StepFailed) else RESTART_S):
                raise
    return answer


def side_by_side(actions: Iterable[tuple[str, Callable[[], T]]]) -> list[T]:
    """Do things on machines: those of one machine in turn, all machines at the same time.

    Returns what the things returned, machine by machine; what the first raised is raised once all have ended.
    """
    by_machine: dict[str, list[Callable[[], T]]] = {}
    for machine, action in actions:
        by_machine.setdefault(machine, []).append(action)
    with ThreadPoolExecutor(max(1, len(by_machine))) as pool:
        futures = [pool.submit(_in_turn, listed) for listed in by_machine.values()]
    return [result for future in futures for result in future.result()]


def _in_turn(actions: list[Callable[[], T]]) -> list[T]:
    return [action() for action in actions]


def _recorded(
    rig: Rig,
    machine: str,
    step: str,
    outer: tuple[str, steps.Request],
    connection: WindowsConnection,
    limit_s: float,
) -> steps.Answer:
    began = time.monotonic()
    changed: tuple[str, ...] = ()
    error = None
    try:
        answer = run_step(connection, *outer, limit_s=limit_s)
        changed = answer.changed
        return answer
    except DiskbookError as failure:
        error = _without_secrets(str(failure), outer[1])
        raise type(failure)(error) from None
    finally:
        if error is not None or step not in QUIET:
            rig.run.append(
                "step",
                replicate=rig.number,
                step=step,
                node=machine,
                ok=error is None,
                error=error,
                changed=list(changed),
                seconds=round(time.monotonic() - began, 3),
            )


def _without_secrets(text: str, request: steps.Request) -> str:
    """A node hides them itself; should it not, they end here."""
    for secret in _secrets(request.model_dump()):
        text = text.replace(secret, HIDDEN)
    return hide(text)


def _secrets(fields: dict[str, object]) -> list[str]:
    inner = fields.get("request")
    values = [fields.get(name) for name in ("password", "witness_key")]
    return [value for value in values if isinstance(value, str) and value] + (
        _secrets(inner) if isinstance(inner, dict) else []
    )


ACCOUNT = "dbkcluster"
_PURPOSE = "cluster password"
_making = threading.Lock()  # replicates are measured side by side, and share it


def password(folder: Path) -> str:
    """Return the password of a run's cluster account, made on first use, readable by the owner only.

    Raises DiskbookError when there is one that was not made by this client for this run.
    """
    path = folder / "keys" / "cluster"
    with _making:
        if not path.exists():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            made = requests.password()
            signature = client.sign(_PURPOSE, folder.name, made)
            write_atomic(path.with_suffix(".signature"), signature + "\n", 0o600)
            write_atomic(path, made, 0o600)
    try:
        kept, signature = path.read_text("ascii"), path.with_suffix(".signature").read_text("ascii").strip()
    except (OSError, ValueError):
        kept, signature = "", ""
    if not client.is_signed(signature, _PURPOSE, folder.name, kept):
        raise DiskbookError(
            f"{path} was not made here for run {folder.name}, so it is not used; remove it: the nodes of the "
            "run's clusters get another password then"
        )
    return kept


def run_step(
    connection: WindowsConnection, step: str, request: steps.Request, *, limit_s: float
) -> steps.Answer:
    """Run a step; its script is put on the machine before, once a connection.

    - `step`, `request`: the step, and what it is asked; it travels on standard input alone.
    - `limit_s`: after this it is taken for hung.

    Raises StepFailed with the machine's own sentence, or when the step does not end.
    """
    node, needed = connection.host.name, steps.scripts(step, request)
    texts = {scripts.path(name): scripts.script(name) for name in needed}
    try:
        output = connection.run_script(
            steps.command(step), steps.standard_input(request), texts, limit_s=limit_s
        )
    except NoAnswer as error:
        raise steps.StepFailed(f"{node}: step {step} {error}") from None
    streams = output.stdout if b"{" in output.stdout else output.stdout + output.stderr
    return steps.outcome(step, streams.decode(errors="replace"), node, needed[0])
