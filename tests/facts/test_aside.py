"""What is computed aside is the same as here, whatever becomes of the copy."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from diskbook.facts import aside



@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Process ids of the copies that were forked; other tests in this process may have children of their own."""
    fork, pids = os.fork, []

    def recorded() -> int:
        pids.append(fork())
        return pids[-1]

    monkeypatch.setattr(os, "fork", recorded)
    return pids


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
def test_a_copy_that_stands_still_is_given_up(copies: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "MOST_S", 0.1)
    here = os.getpid()

    def still() -> bytes:
        if os.getpid() != here:
            signal.pause()
        return b"whole"

    assert aside.begun(still)() == b"whole"
    for copy in copies:
        with pytest.raises(ChildProcessError):
            os.waitpid(copy, os.WNOHANG)


@pytest.mark.emulator
def test_another_thread_computes_for_itself() -> None:
    answers: list[bytes] = []
    thread = threading.Thread(target=lambda: answers.append(aside.begun(pid)()))
    thread.start()
    thread.join()
    assert answers == [pid()]


@pytest.mark.emulator
@two_cores
@pytest.mark.parametrize("number", [0, 1, 2, 7, 8])
def test_every_second_item_is_computed_aside_and_all_keep_their_order(number: int) -> None:
    items = list(range(number))
    answers = aside.each(lambda item: (item, os.getpid()), items, few=1)
    assert [item for item, _ in answers] == items
    of_copies = [item for item, process in answers if process != os.getpid()]
    assert of_copies == (items[1::2] if number > 1 else [])


@pytest.mark.emulator
@pytest.mark.parametrize("bad", [2, 3])
def test_an_item_that_fails_raises_here_and_leaves_no_copy(copies: list[int], bad: int) -> None:
    def compute(item: int) -> int:
        if item == bad:
            raise ValueError(f"item {item}")
        return item

    with pytest.raises(ValueError, match=f"item {bad}"):
        aside.each(compute, range(8), few=1)
    for copy in copies:
        with pytest.raises(ChildProcessError):
            os.waitpid(copy, os.WNOHANG)
