"""A plugin of pytest: repeat a measurement that other programs, or the machine itself, disturbed.

In continuous integration, try any test that failed once more, and list it with its failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from _pytest.runner import runtestprotocol

from support.disturbance import EVERY_S, LoadSensitiveError, OtherLoad

ATTEMPTS = 3
AGAIN = "measured again, since something disturbed it"
SECOND_TRY = "passed at the second try: mend these tests, and record the cause in checks/flaky.toml"
SECOND_TRY_S = 600.0
WANTED = "DISKBOOK_TESTS_SECOND_TRY"  # the environment variable that asks for second tries


class MeasureAgain:
    """Runs the tests that measure, and repeats those that fail while something disturbs them.

    Only failures within `load_sensitive` are repeated, with new fixtures. A test that is disturbed
    in each attempt is skipped as "not judged".

    Parameters
    ----------
    config
        The settings of this process of pytest.
    measures
        Tells whether a test measures; pytest runs all others as usual.
    marker
        Text in the environment of each process that the tests start.
    """

    def __init__(self, config: pytest.Config, measures: Callable[[pytest.Item], bool], marker: str) -> None:
        self._config = config
        self._measures = measures
        self._marker = marker
        self._other: OtherLoad | None = None
        self._module = ""
        self._since = 0.0  # when the first fixture of the module was made

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a test that measures, or any test if second tries are wanted; leave others to pytest."""
        second_try = bool(os.environ.get(WANTED))
        if not (self._measures(item) or second_try):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = self._tried(item, nextitem)
        if second_try and any(report.failed for report in reports):
            self._second_try(item, reports)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _tried(self, item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
        if not self._measures(item):
            return runtestprotocol(item, log=False, nextitem=nextitem)
        self._other = self._other or OtherLoad(self._marker)
        module = item.nodeid.split("::")[0]
        if module != self._module:
            self._module, self._since = module, time.monotonic()
        return self._measured(item, nextitem, self._other)

    def _second_try(self, item: pytest.Item, reports: list[pytest.TestReport]) -> None:
        """Try a failed test again in a new process; where it passes, keep how it failed for the list."""
        item.add_marker("emulator")  # unmarked ones may start no process, and this starts one for it
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment[WANTED] = ""
        command = [sys.executable, "-m", "pytest", "-n0", "--rootdir", str(item.config.rootpath), item.nodeid]
        # Its output goes nowhere: a process that a failed test leaves behind would keep a pipe open.
        with subprocess.Popen(
            command,
            cwd=item.config.rootpath,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as again:
            try:
                passed = again.wait(SECOND_TRY_S) == 0
            except subprocess.TimeoutExpired:
                again.kill()
                passed = False
        if not passed:
            return
        failed = [report for report in reports if report.failed]
        texts = [report.longreprtext for report in failed]
        for report in failed:
            report.outcome, report.longrepr = "passed", None
        reports[-1].user_properties.append((SECOND_TRY, "\n".join([item.nodeid, *texts])))

    def _measured(
        self, item: pytest.Item, nextitem: pytest.Item | None, other: OtherLoad
    ) -> list[pytest.TestReport]:
        for attempt in range(1, ATTEMPTS + 1):
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            if not _is_load_sensitive(reports):
                return reports
            time.sleep(3 * EVERY_S)  # until the last second is on record, and one look more
            disturbed = other.disturbed(self._since)
            if not disturbed:
                return reports
            item.user_properties.append((AGAIN, f"{item.nodeid}, {attempt}: {disturbed}"))
            item.session._setupstate.teardown_exact(None)
            self._since = time.monotonic()
        return [_not_judged(report, item, disturbed) for report in reports]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
        """Note whether other programs may be why a test failed."""
        report: pytest.TestReport = yield
        error = call.excinfo.value if call.excinfo else None
        report.load_sensitive = isinstance(error, LoadSensitiveError)
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Name a failed test at once: a run that is ended before its summary would not tell."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")  # none in pytest-xdist's workers
        if report.failed and terminal is not None:
            terminal.write_line(f"\nfailed: {report.nodeid} ({report.when})")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the tests that were measured again or passed at the second try, at the end of the run."""
        reports = [report for reports in terminalreporter.stats.values() for report in reports]
        ended = [report for report in reports if getattr(report, "when", "") == "teardown"]
        for title in (AGAIN, SECOND_TRY):
            listed = [line for report in ended for name, line in report.user_properties if name == title]
            if listed:
                terminalreporter.section(title)
                terminalreporter.write_line("\n".join(listed))


def _is_load_sensitive(reports: list[pytest.TestReport]) -> bool:
    """Return whether a test failed, and only by assertions that a busy machine can break."""
    failed = [report for report in reports if report.failed]
    return bool(failed) and all(report.load_sensitive for report in failed)


def _not_judged(report: pytest.TestReport, item: pytest.Item, disturbed: str) -> pytest.TestReport:
    """Turn a failure into a skip that says why."""
    if report.failed:
        report.outcome = "skipped"
        path, line, _ = item.location
        reason = f"Skipped: not judged: disturbed in {ATTEMPTS} attempts, in the last since {disturbed}"
        report.longrepr = (path, line or 0, reason)
    report.user_properties = list(item.user_properties)
    return report
