"""One bar over all stages on a terminal, also one without a size; plain lines in a log."""

from __future__ import annotations

import os
import pty
import re
import sys
from pathlib import Path

import pytest

from diskbook.measure.runs.progress import Progress

STAGES = {"1": 1.0, "2": 2.0, "3": 1.0, "4": 1.0}
CODE = """
import json, pathlib, sys
from diskbook.measure.runs.progress import Progress
ledger = pathlib.Path(sys.argv[1])
progress = Progress(ledger, 2, 0, {"1": 1.0, "2": 2.0, "3": 1.0, "4": 1.0})
trial = {"event": "trial", "status": "ok", "arm": "a", "workload": "w"}
for stage in ("1-provision", "2-benchmark", "3-analyse", "4-teardown"):
    progress.begin(stage)
    ledger.write_text((json.dumps(trial) + chr(10)) * 2 * (stage[0] == "2"))
    progress.follow()
    progress.end(stage, 0.1)
progress.close()
"""


def on_a_terminal(ledger: Path) -> str:
    """What is drawn on a terminal that does not know its size."""
    child, terminal = pty.fork()
    if child == 0:
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        os.execve(sys.executable, [sys.executable, "-c", CODE, str(ledger)], environment)
    parts = []
    try:
        while part := os.read(terminal, 4096):
            parts.append(part)
    except OSError:  # the end of a terminal
        pass
    os.close(terminal)
    assert os.waitpid(child, 0)[1] == 0
    return b"".join(parts).decode()


@pytest.mark.emulator
def test_a_terminal_without_a_size_gets_one_bar_over_all_stages(tmp_path: Path) -> None:
    drawn = on_a_terminal(tmp_path / "ledger.jsonl")
    shares = [int(share) for share in re.findall(r"(\d+)%\|", drawn)]
    assert shares == sorted(shares) and shares[0] == 0 and {20, 60, 80, 100} <= set(shares)
    assert re.search(r"2-benchmark +\d+%\|.*\d\d:\d\d<\d\d:\d\d", drawn) and "trial 2/2, a w" in drawn
    assert "more hidden" not in drawn
    assert [line for line in re.split(r"[\r\n]+", drawn) if " done in " in line] == [
        *(f"{stage} done in 0 s" for stage in ("1-provision", "2-benchmark", "3-analyse", "4-teardown")),
    ]


def test_a_log_has_a_line_per_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = tmp_path / "ledger.jsonl"
    progress = Progress(ledger, 2, 0, STAGES)
    progress.begin("2-benchmark")
    ledger.write_text(
        '{"event": "trial", "status": "ok", "arm": "a", "workload": "w", "replicate": 1, "block": 3, '
        '"seen": "read 1 ms"}\n'
    )
    progress.follow()
    progress.end("2-benchmark", 2.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2-benchmark ..." and lines[2] == "2-benchmark done in 2 s"
    assert lines[1].split() == ["trial", "1/2", "replicate", "1", "block", "3", "a", "w", "read", "1", "ms"]
