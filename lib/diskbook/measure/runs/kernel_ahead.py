"""A notebook's kernel that is begun ahead: it imports while the process that talks to it does so, too.

Its program waits, once it has imported what the notebook's cells begin with, for a line on its standard input
that says where the two meet; it ends where there comes none.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

AHEAD = "--ahead"
"""To the kernel's program: what follows is to be imported, and all else comes by standard input."""
_OURS = "diskbook"
_begun: list[subprocess.Popen[bytes]] = []


@contextlib.contextmanager
def begun(source: Path) -> Iterator[None]:
    """Begin the kernel of a notebook; one that nobody took is ended.

    Parameters
    ----------
    source
        The notebook. One that cannot be read begins with no import; who executes it will say why.
    """
    # As jupyter_client starts kernels: apart from the signals of this session, ended with this process.
    _begun.append(
        subprocess.Popen(
            [sys.executable, "-m", "diskbook.measure.runs.kernel", AHEAD, "\n".join(_imports(source))],
            env={**os.environ, "JPY_PARENT_PID": str(os.getpid())},
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        yield
    finally:
        while _begun:
            left = _begun.pop()
            left.kill()
            left.communicate()


def taken(
    arguments: Sequence[str], environ: Mapping[str, str], folder: str
) -> subprocess.Popen[bytes] | None:
    """Take the kernel that was begun, and tell it with what and where to go on; None where there is none.

    Parameters
    ----------
    arguments, environ, folder
        Arguments of the kernel's program, its environment and its working folder.
    """
    if not _begun:
        return None
    kernel = _begun.pop()
    assert kernel.stdin is not None  # it is a pipe
    launch = {"arguments": list(arguments), "environ": dict(environ), "folder": folder}
    with contextlib.suppress(BrokenPipeError), kernel.stdin:  # one that died is found dead by who asks it
        kernel.stdin.write(json.dumps(launch).encode() + b"\n")
    return kernel


def go_on(imports: str) -> list[str] | None:
    """Import, in a kernel that was begun, and wait to be told the arguments; None where nobody tells any.

    What cannot be imported is left to the cell that says the same, which shows why.
    """
    # As IPython does, later: whoever draws with pyplot finds it where matplotlib is imported.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    with contextlib.suppress(Exception):
        exec(imports, {})
    line = sys.stdin.readline()
    if not line:
        return None
    launch = json.loads(line)
    os.environ.update(launch["environ"])
    os.chdir(launch["folder"])
    arguments: list[str] = launch["arguments"]
    return arguments


def _imports(source: Path) -> list[str]:
    """Statements by which the cells of a notebook import what is the workbook's own."""
    try:
        cells = json.loads(source.read_text("utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [ast.unparse(statement) for text in code for statement in _statements(text) if _is_ours(statement)]


def _statements(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError):  # IPython knows more than Python does
        return []


def _is_ours(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and (statement.module or "").partition(".")[0] == _OURS
