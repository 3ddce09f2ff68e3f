"""What is imported on demand is named in one table per kind, and importing the package is cheap."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from diskbook import cli
from diskbook.cloud import kinds
from diskbook.design import scenario_file
from diskbook.facts import neighbours, paths
from diskbook.facts.errors import UsageError
from diskbook.facts.neighbours import LazyTable, Neighbour, imported
from diskbook.report.analysis import companion_files
from diskbook.tools import registry

LIBRARY = paths.ROOT / "lib"
_NAMING = re.compile(r'"(diskbook(?:_emulator)?(?:\.\w+)+:\w+)"')
TABLES = {
    "diskbook/cli/__init__.py": cli.COMMANDS,
    "diskbook/cloud/kinds.py": kinds.CLOUDS,
    "diskbook/design/scenario_file.py": scenario_file.CHECKS,
    "diskbook/facts/neighbours.py": {
        name: value._name for name, value in vars(neighbours).items() if isinstance(value, Neighbour)
    },
    "diskbook/report/analysis/companion_files.py": companion_files.ANALYSES._rows,  # type: ignore[attr-defined]
    "diskbook/tools/registry.py": registry.TOOLS._rows,  # type: ignore[attr-defined]
} | {
    file: {where: where for where in _NAMING.findall((LIBRARY / file).read_text("utf-8"))}
    for file in ("diskbook/cli/options.py", "diskbook/cli/run.py")  # callbacks that check options
}
"""File of each table, and its rows."""


@pytest.mark.parametrize("file", TABLES)
def test_every_row_of_a_table_can_be_imported(file: str) -> None:
    for name, where in TABLES[file].items():
        assert imported(where, name) is not None


def test_no_other_file_names_an_object_to_be_imported() -> None:
    naming = {
        str(path.relative_to(LIBRARY))
        for path in LIBRARY.rglob("*.py")
        if _NAMING.search(path.read_text("utf-8"))
    }
    assert naming <= TABLES.keys()


def test_a_package_that_is_missing_costs_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=r"the tool x needs no_such_package, which is not installed: run"):
        LazyTable({"x": "no_such_package.tool:TOOL"}, "tool")["x"]
    # None makes an import fail, as where the extra is not installed.
    for name in [name for name in sys.modules if name.split(".")[0] in ("dask", "distributed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setitem(cli.cli.lazy, "many", "dask.bag:from_sequence")  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "argv", ["diskbook", "many"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    expected = "diskbook: 'diskbook many' needs dask, which is not installed: pip install -e '.[cluster]'\n"
    assert (ended.value.code, capsys.readouterr().err) == (2, expected)


@pytest.mark.emulator
def test_importing_the_package_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys, diskbook; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert not {"azure", "matplotlib", "numpy", "pandas", "pydantic", "scipy"} & set(done.stdout.split())
