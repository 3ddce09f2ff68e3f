"""Run steps in parallel, each as soon as the steps it depends on are done; find the longest chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

AT_ONCE = 64  # steps mostly wait for Azure, so this costs little


@dataclass(frozen=True)
class Step:
    """Something to do, given the results of the steps it needs, by name."""

    action: Callable[[Mapping[str, Any]], Any]
    needs: tuple[str, ...] = ()


def run(
    steps: Mapping[str, Step],
    done: Callable[[str, Any], None] = lambda name, result: None,
    at_once: int = AT_ONCE,
) -> dict[str, Any]:
    """Do all steps, in parallel as far as what they need allows.

    When one fails, those under way are waited for and none is begun any more.

    Parameters
    ----------
    steps
        By name.
    done
        Called with name and result of each step, in the calling thread, in the order they end.
    at_once
        How many steps may be under way.

    Returns
    -------
    dict
        The results by name.

    Raises
    ------
    Exception
        What the first step to fail raised.
    graphlib.CycleError
        When steps need one another in a circle.
    """
    order = TopologicalSorter({name: step.needs for name, step in steps.items()})
    order.prepare()
    results: dict[str, Any] = {}
    running: dict[Future[Any], str] = {}
    failed: BaseException | None = None
    with ThreadPoolExecutor(at_once) as pool:
        while order.is_active():
            for name in () if failed else order.get_ready():
                given = {need: results[need] for need in steps[name].needs}
                running[pool.submit(steps[name].action, given)] = name
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                failed = failed or future.exception()
                if future.exception() is None:
                    results[name] = future.result()
                    done(name, results[name])
                    order.done(name)
    if failed:
        raise failed
    return results


def longest_chain(
    needs: Mapping[str, Iterable[str]], duration_s: Mapping[str, float]
) -> tuple[float, list[str]]:
    """Find the chain of steps that takes longest: no order of doing them is faster.

    Parameters
    ----------
    needs
        For each step the steps it needs.
    duration_s
        Seconds of each step; 0 for those not named.

    Returns
    -------
    tuple
        Its duration in seconds, and its steps in order.
    """
    best: dict[str, tuple[float, list[str]]] = {}
    for name in TopologicalSorter(needs).static_order():
        before = max((best[need] for need in needs.get(name, ())), default=(0.0, []))
        best[name] = (before[0] + duration_s.get(name, 0.0), [*before[1], name])
    return max(best.values(), default=(0.0, []))
