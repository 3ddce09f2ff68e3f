"""The README: its length, its snippets, its table, and links of all documents."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest

import diskbook as db
from diskbook.design import scenario_file
from diskbook.facts import paths

README = paths.ROOT / "README.md"
TEXT = README.read_text("utf-8")
DOCUMENTS = [
    README,
    *(paths.ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md")),
    *(path for path in (paths.ROOT / "docs").glob("**/*.md") if not {"_build", "samples"} & set(path.parts)),
]
LINK = re.compile(r"(?<!`)\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def block(kind: str, text: str = TEXT) -> str:
    match = re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)
    assert match
    return match[1]


@pytest.fixture(scope="module", autouse=True)
def _opened_once() -> Iterator[None]:
    """Open a run once, however many examples do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(db, "open_run", functools.cache(db.open_run))
        yield


def test_the_readme_is_short() -> None:
    assert len(TEXT.splitlines()) <= 150


@pytest.mark.long
def test_the_lines_of_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    exec(compile(block("python"), "README.md", "exec"), {})
    assert (tmp_path / "ratios.svg").stat().st_size


@pytest.mark.long
@pytest.mark.parametrize("name", ["read-a-run", "change-an-analysis"])
def test_the_python_of_a_tutorial_runs(name: str) -> None:
    text = (paths.ROOT / "docs" / "tutorials" / f"{name}.md").read_text("utf-8")
    matplotlib.use("Agg")
    names: dict[str, object] = {}
    for lines in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        if '"monday"' not in lines:  # runs that a reader has made
            exec(compile(lines, name, "exec"), names)


@pytest.mark.parametrize("path", [README, paths.ROOT / "docs" / "tutorials" / "your-own-scenario.md"])
def test_the_scenario_is_one(tmp_path: Path, path: Path) -> None:
    (tmp_path / "mine.toml").write_text(block("toml", path.read_text("utf-8")), "utf-8")
    scenario = scenario_file.load(str(tmp_path / "mine.toml"), preset="quick")
    assert [arm.name for arm in scenario.arm] == ["small", "large"] and len(scenario.comparison) == 1


@pytest.mark.long
def test_the_table_is_what_the_sample_run_says() -> None:
    run = db.open_run("sample-zone-disks")
    rows = re.findall(r"^\| `(\S+)`: [^|]+\|(.+)\|$", TEXT, re.MULTILINE)
    assert len(rows) == 4
    for workload, cells in rows:
        direction = "commit" if workload.startswith("commit") else None
        result = run.compare("zrs-z1", "lrs-z1", workload=workload, direction=direction)
        base, value, change, interval, verdict = (cell.strip() for cell in cells.split("|"))
        assert [float(base.split()[0]), float(value.split()[0])] == pytest.approx(
            [result.base_value, result.value], rel=0.005
        )
        assert verdict == result.verdict
        if change != "withheld":
            low, high = interval.removesuffix(" %").split(" to ")
            assert [float(part) for part in (change.removesuffix(" %"), low, high)] == pytest.approx(
                [result.change_pct, *result.scope.ci_pct], abs=0.6
            )


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(paths.ROOT)))
def test_links_lead_to_files(path: Path) -> None:
    dead = [link for link in LINK.findall(path.read_text("utf-8")) if not (path.parent / link).exists()]
    assert not [link for link in dead if not {"samples", "gallery"} & {*link.split("/")}]  # by `make docs`
