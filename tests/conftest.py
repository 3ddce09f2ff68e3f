"""Fixtures of several packages, and how tests share a machine: in several processes, by five marks.

`make test` takes four processes (pytest-xdist): many tests wait, for machines to start or for loads to end.
A process takes one module after another, so that what a module shares is made once.

- `measures`: judges a latency, rate or duration that was measured here. These come last, one at a time, in
  one process, while the others wait: no other test competes with them.
- `alone`: `measures`, and drives the disk to its limits.
- `emulator`: starts processes. Without this mark, or one that implies it, a test that tries to fails.
- `whole`: crosses all packages, as a run does from plan to report.
- `long`: takes the processor for half a second or more: simulations, fuzzing, drawings of all samples.

`make test-fast` runs the tests that have none of them. `make faults` runs those marked `faults`, which
`make test` leaves out.

Other programs may still use the machine, and a virtual one may stand still. What this can move, a test
asserts within `load_sensitive` (support/disturbance.py). If that fails while others used over 0.3 of a core,
or the machine was late, the fixtures are made again and the test measures again, up to three times. Disturbed
three times, it is skipped as "not judged". Tests that measured again are listed at the end. What is to be
found exactly is computed from what the emulator has played (`support/played.py`). Limits of waits are for
what hangs: five times of what is usual beside other tests.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadScopeScheduling

from support import browser, real_path
from support.measure_again import MeasureAgain

if TYPE_CHECKING:
    from support.arm_plane import World

# A long one that begins last keeps all others waiting.
LONGEST_FIRST = (
    "tests/project/test_types.py",
    "tests/whole/test_platform_minute.py",
    "tests/whole/test_pages.py",
    "tests/checks/test_rehearse.py",
    "tests/measure/runs/test_pipeline.py::test_a_stopped_run_of_ones_own_scenario_goes_on_to_the_report",
    "tests/measure/bench/test_trials.py",
    "tests/measure/runs/test_pipeline.py",
    "tests/whole/test_attacks.py",
    "tests/measure/runs/test_sweep.py",
    "tests/emulator/test_lifecycle.py",
    "tests/cloud/azure/test_attach_recovery.py",
    "tests/cloud/azure/test_preflight.py",
    "tests/emulator/test_volume.py",
    "tests/cloud/azure/test_provision.py",
    "tests/measure/bench/test_failover.py",
    "tests/whole/test_random_scenarios.py",
    "tests/whole/test_aa.py",
    "tests/publish/test_samples.py",
    "tests/cli/test_examples.py",
    "tests/whole/test_volumes.py",
)
MEASURES, ALONE = "measures", "alone"
SHARED = "DISKBOOK_TESTS_FOLDER"  # where the processes of one call of pytest meet


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder that the processes share; they inherit its name, and may keep what they compile."""
    if not hasattr(config, "workerinput"):
        # Else every process of the tests compiles all modules again, and the tests' own with them.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False
        folder = tempfile.TemporaryDirectory(prefix="diskbook-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ[SHARED] = folder.name
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(folder.name, "hypothesis"))
    # Each process is a client of its own: not the user, and not the tests beside it.
    os.environ["XDG_STATE_HOME"] = str(Path(os.environ[SHARED], _process(config), "state"))
    config.pluginmanager.register(MeasureAgain(config, _measures, os.environ[SHARED]))
    _set_up_hypothesis()
    gc.set_threshold(20_000, 10, 10)  # by default a seventh of the processor time is the garbage collector's


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt imported modules and collected tests, which all stay, from garbage collection."""
    gc.freeze()


def _set_up_hypothesis() -> None:
    """Let each test try the same examples in every run, however long one takes on a busy machine.

    By default Hypothesis also parses all modules of the project, 2.5 s per process, and tries the constants
    that it finds: any changed line would change the examples.
    """
    settings.register_profile(
        "tests", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("tests")
    providers.is_local_module_file = lambda path: False


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One served control plane for the tests of a module; each test makes groups of its own."""
    from support.arm_plane import world  # imports Azure's clients, which many tests do without

    with world(tmp_path_factory.mktemp("plane")) as made:
        yield made


# --- who runs what, and when


def _measures(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in (MEASURES, ALONE))


def _unit(item: pytest.Item) -> str:
    """What one process does in one piece: a module, a part of one, or all that measure."""
    if _measures(item):
        return MEASURES
    return next((part for part in LONGEST_FIRST if item.nodeid.startswith(part)), item.nodeid.split("::")[0])


def _turn(item: pytest.Item) -> tuple[int, int, str]:
    """Place of a test's unit in the queue: the longest, all others, what measures."""
    unit, module = _unit(item), item.nodeid.split("::")[0]
    if unit in LONGEST_FIRST:
        return 0, LONGEST_FIRST.index(unit), module
    return (2 if unit == MEASURES else 1), 0, module


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by mark
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In one of several processes: bring the units into order, and tell the scheduler what is in each."""
    for item in items:
        if _measures(item):
            item.add_marker(pytest.mark.emulator)
    if hasattr(config, "workerinput"):
        items.sort(key=_turn)
        part = Path(os.environ[SHARED], f"units-{_process(config)}.json")
        part.write_text(json.dumps({item.nodeid: _unit(item) for item in items}))
        part.rename(part.with_name("units.json"))  # all processes write the same


class Units(LoadScopeScheduling):
    """Gives each process a unit after another, in the order of the collection.

    It knows tests by name only. (`--dist loadgroup` would have a group in the name, but not with pytest 9.2.)
    """

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    @functools.cached_property
    def _units(self) -> dict[str, str]:
        units: dict[str, str] = json.loads(Path(os.environ[SHARED], "units.json").read_text())
        return units

    def _split_scope(self, nodeid: str) -> str:
        return self._units[nodeid]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Units:
    """Have the tests handed out by unit, whatever `--dist` says."""
    return Units(config, log)


# --- every process collects all tests; the first time this compiles all that they import


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[Any]:
    """Let as many processes collect at a time as there are processors: the others find all compiled."""
    if not hasattr(session.config, "workerinput"):
        return (yield)
    slot = _number(session.config) % (os.cpu_count() or 1)
    with _held(f"collection-{slot}", fcntl.LOCK_EX):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[pytest.CollectReport]:
    """Let every other process begin with the last folder, so that two do not compile the same."""
    report: pytest.CollectReport = yield
    if isinstance(collector, pytest.Dir) and hasattr(collector.config, "workerinput"):
        report.result = report.result[:: -1 if _number(collector.config) % 2 else 1]
    return report


def _process(config: pytest.Config) -> str:
    """Return the name of this process of the tests: gw0 and so on, or "main"."""
    return str(getattr(config, "workerinput", {}).get("workerid", "main"))


def _number(config: pytest.Config) -> int:
    """Return n of the process gw<n>."""
    return int(_process(config).removeprefix("gw"))


# --- what measures is alone, and what is not marked starts nothing

_STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"}
_running: list[pytest.Item] = []


_OF_LIBRARIES = {"uname", "fc-list", "ldconfig", "gcc", "cc", "ld", "objdump"}
"""What libraries ask the system by, once a process: its processor, its fonts, its shared libraries."""


def _refuse_processes(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _STARTS and _running and not _may_start(_running[0]):
        if arguments and Path(os.fsdecode(arguments[0])).name in _OF_LIBRARIES:
            return
        raise AssertionError(
            f"it starts a process ({event}): mark the test `emulator`, see tests/conftest.py"
        )


def _may_start(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("emulator", "whole"))


sys.addaudithook(_refuse_processes)


@contextlib.contextmanager
def _held(name: str, kind: int) -> Iterator[None]:
    with Path(os.environ[SHARED], name).open("a") as lock:
        fcntl.flock(lock, kind)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # closing would not do: a process that was forked has it too


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest-timeout, which must not count the waiting
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Run a test beside others, or alone if it measures."""
    with _held("machine", fcntl.LOCK_EX if _measures(item) else fcntl.LOCK_SH):
        _running.append(item)
        try:
            return (yield)
        finally:
            _running.clear()


# --- which disks were met, said at the end


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what the tests of the real I/O path have met, and why they met no more."""
    met = []
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if getattr(report, "when", "") == "call":
            met += [line for name, line in report.user_properties if name == real_path.SUMMARY]
        if getattr(report, "skipped", False) and real_path.TESTS in report.nodeid:
            met.append(
                f"not met, {report.nodeid.split('::')[1]}: {report.longrepr[2].removeprefix('Skipped: ')}"
            )
    if any(browser.MISSING in str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(browser.MISSING)
    if met:
        terminalreporter.section(real_path.SUMMARY)
        terminalreporter.write_line("\n".join(met))
