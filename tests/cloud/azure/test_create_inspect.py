"""A new machine that is not reached, or not set up: the sentence names what to look at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import paramiko
import pytest

from diskbook.cloud.azure import create
from diskbook.facts.errors import DiskbookError
from diskbook.hosts.ssh import Output, UnreachableError
from diskbook.tools import registry


def _advice(cause: Exception, private: bool = False) -> str:
    error = UnreachableError("machine r1-vm1 cannot be reached")
    error.__cause__ = cause
    return create.unreachable_advice(error, "203.0.113.7/32", private=private)


@pytest.mark.parametrize("cause", [TimeoutError("timed out"), ConnectionRefusedError("refused")])
def test_a_machine_that_does_not_answer(cause: Exception) -> None:
    said = _advice(cause)
    for words in ("203.0.113.7/32", "VPN", "egress", "--ssh-source", "port 22", "--try-ssh", "cloud-init"):
        assert words in said
    assert "--debug-minutes" in said and "--ssh-source" not in _advice(cause, private=True)


def test_a_machine_that_lets_nobody_in() -> None:
    assert _advice(paramiko.AuthenticationException("no")).startswith("Its sshd refuses the run's key")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (124, "cloud-init has not finished after 14 min"),
        (127, "does not have the tool that cloud-init installs (sh: fio: not found)"),
    ],
)
def test_a_machine_that_is_not_set_up(status: int, said: str) -> None:
    output = Output(status, b"Linux 6\n", b"sh: fio: not found\n")
    connection: Any = SimpleNamespace(
        host=SimpleNamespace(name="r1-vm1"), run=lambda command, timeout_s: output
    )
    with pytest.raises(DiskbookError, match="'cloud-init status --long'") as caught:
        create._linux_software(connection, registry.TOOLS["fio"])
    assert said in str(caught.value)
