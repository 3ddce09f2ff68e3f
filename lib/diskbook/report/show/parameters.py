"""Parameters that papermill injects: names that the workbook knows, of the type that the notebook says."""

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any

from IPython.core.getipython import get_ipython

from diskbook.facts import paths
from diskbook.facts.errors import UsageError, unknown

INJECTED = "# Parameters\n"
"""First line of the cell that papermill puts behind a notebook's own parameters."""
_TYPES: Mapping[str, type] = {"str": str, "list": list, "dict": dict}


def check_parameters() -> None:
    """Stop the notebook that is being executed where papermill gave it a parameter that nothing reads.

    Only papermill's cell counts: whatever an analyst assigns in JupyterLab is left alone.

    Raises UsageError when no notebook of the workbook has such a parameter, or its value is of another type.
    """
    shell: Any = get_ipython()
    if shell is not None:
        check_cells(shell.history_manager.input_hist_raw)


def check_cells(sources: Sequence[str]) -> None:
    """Check the last cell of papermill's, by the parameters of the cell before it."""
    numbers = [number for number, source in enumerate(sources) if source.startswith(INJECTED)]
    if not numbers:
        return
    declared = _declared(sources[numbers[-1] - 1])
    for name, value in _given(sources[numbers[-1]]):
        if name not in declared:
            if name not in (known := _of_workbook()):
                raise unknown("parameter", name, {*declared, *known}, "papermill")
        elif value is not None and not isinstance(value[0], declared[name]):
            kind, expected = type(value[0]).__name__, declared[name].__name__
            raise UsageError(f"papermill: parameter '{name}' is a {kind}, {value[0]!r}; give it a {expected}")


def _declared(source: str) -> dict[str, type]:
    """Parameters of a notebook's own cell with their types."""
    return {
        node.target.id: _TYPES.get(ast.unparse(node.annotation), object)
        for node in ast.parse(source).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _given(source: str) -> list[tuple[str, tuple[Any] | None]]:
    """Names of papermill's cell with their values; None for what is no literal."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return [(ast.unparse(node.targets[0]), _literal(node.value)) for node in nodes]


def _literal(node: ast.expr) -> tuple[Any] | None:
    try:
        return (ast.literal_eval(node),)
    except ValueError:  # papermill writes NaN as a call
        return None


def _of_workbook() -> set[str]:
    """Parameters of all notebooks of the workbook, since one file of parameters serves them all."""
    names: set[str] = set()
    for path in paths.NOTEBOOKS.glob("*.ipynb"):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if "parameters" in cell["metadata"].get("tags", []):
                names |= set(_declared("".join(cell["source"])))
    return names
