"""What is computed aside is the same as here, whatever becomes of the copy."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from diskbook.base import aside

two_cores = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="a fork helps on Linux with two cores"
)


def pid() -> bytes:
    return str(os.getpid()).encode()


@pytest.mark.emulator
@two_cores
def test_an_answer_larger_than_a_pipe_comes_from_another_process() -> None:
    wait = aside.begun(lambda: pid() + b" " * 1_000_000)
    answer = wait()
    assert len(answer) > 1_000_000 and answer.strip() != pid()


@pytest.mark.emulator
def test_an_error_is_raised_here() -> None:
    def fail() -> bytes:
        raise ValueError("no such figure")

    with pytest.raises(ValueError, match="no such figure"):
        aside.begun(fail)()


@pytest.mark.emulator
@two_cores
def test_what_a_killed_copy_did_not_answer_is_computed_here() -> None:
    here = os.getpid()

    def killed() -> bytes:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return b"whole"

    assert aside.begun(killed)() == b"whole"


@pytest.mark.emulator
@two_cores
def test_a_copy_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "MOST_S", 0.1)
    here = os.getpid()

    def still() -> bytes:
        if os.getpid() != here:
            signal.pause()
        return b"whole"

    assert aside.begun(still)() == b"whole"
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.emulator
def test_another_thread_computes_for_itself() -> None:
    answers: list[bytes] = []
    thread = threading.Thread(target=lambda: answers.append(aside.begun(pid)()))
    thread.start()
    thread.join()
    assert answers == [pid()]
