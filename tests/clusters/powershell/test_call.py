"""Steps over a connection that a test plays: scripts put once, requests on standard input, one sentence."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from diskbook.clusters.measure.node_steps import run_step
from diskbook.clusters.powershell import steps
from diskbook.clusters.powershell.steps import StepFailed
from diskbook.hosts.ssh import Host, Output
from diskbook.hosts.ssh_windows import WindowsConnection


class Played(WindowsConnection):
    """A connection whose commands end as a test says; `ran` has each with its standard input."""

    def __init__(self, *ends: Output | BaseException) -> None:
        super().__init__(Host("r1-n1", "127.0.0.1", 1, "me", "ssh-ed25519 AAAA", Path("none")))
        self.ran: list[tuple[str, bytes, float]] = []
        self.ends = list(ends)

    def _run_once(self, command: str, stdin: bytes, timeout_s: float) -> Output:
        self.ran.append((command, stdin, timeout_s))
        if "-EncodedCommand" in command:
            return Output(0, b"", b"")
        self._answered = True
        end = self.ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        return end


def printed(step: str, **more: object) -> Output:
    return Output(
        0, json.dumps({"step": step, "ok": True, "changed": ["x"], "state": {}, **more}).encode(), b""
    )


PLACE = steps.Place(volume="v", node="r1-n2")
TASK = steps.as_task("place", PLACE, "dbkcluster", "secret-of-a-run")


def test_a_steps_script_is_put_once_a_connection_and_its_request_goes_to_standard_input() -> None:
    inner = printed("place").stdout.decode()
    done = printed("task", state={"step": "place", "output": inner})
    connection = Played(done, done, printed("place"))
    answers = [run_step(connection, "task", TASK, limit_s=10) for _ in range(2)]
    answers.append(run_step(connection, "place", PLACE, limit_s=10))
    assert answers == [steps.Answer({}, ("x",))] * 3
    puts = [stdin for command, stdin, _ in connection.ran if "-EncodedCommand" in command]
    assert [base64.b64decode(text).decode() for text in puts] == [steps.script("place"), steps.script("task")]
    ran = [row for row in connection.ran if "-File" in row[0]]
    assert [command for command, _, _ in ran] == [steps.command(step) for step in ("task", "task", "place")]
    assert ran[0][1] == steps.standard_input(TASK) and {limit for _, _, limit in ran} == {70.0}
    assert not any("secret-of-a-run" in command for command, _, _ in connection.ran)


def test_a_step_is_repeated_where_its_connection_breaks() -> None:
    connection = Played(EOFError("connection lost"), printed("place"))
    assert run_step(connection, "place", PLACE, limit_s=10).changed == ("x",)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (TimeoutError(), "step place gave no answer in 70 s"),
        (Output(1, b"", b"it is\nnot there"), "gave no answer that can be read, but: it is not there"),
        (
            printed("place", ok=False, error={"message": "the owner\r\nis another"}),
            r"^the owner is another \(step place on r1-n1\)",
        ),
    ],
)
def test_a_step_that_fails_is_told_in_one_sentence(end: Output | BaseException, message: str) -> None:
    with pytest.raises(StepFailed, match=f"{message}$"):
        run_step(Played(end), "place", PLACE, limit_s=10)
