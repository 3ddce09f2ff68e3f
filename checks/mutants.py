"""Do the tests notice a mistake? Run a seeded sample of mutants by the tests that cover them: `make mutants`.

A mutant is one module with one change: an operator, a number, a deleted `not`, a return value. It is made in
a copy of the tree. Ends with 1 when the tests pass on more than a fifth of the mutants.
"""

import argparse
import ast
import itertools
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import coverage

from diskbook.facts import paths

PACKAGES = ("stats", "design", "results")
LEAST_KILLED = 0.8
MUTANTS, SEED = 200, 33
LIMIT_S = 300
"""A mutant whose tests run longer counts as killed: most loop without an end."""
CORES = os.cpu_count() or 1
FAST = "not emulator and not whole and not measures"
_PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn),
    (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr), (ast.And, ast.Or),
]  # fmt: skip
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    **dict(_PAIRS),
    **{new: old for old, new in _PAIRS},
}


class Mutant(NamedTuple):
    """A module (path in the tree), the bytes from `start` to `end` of it, and what they become."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str


def mutants(path: str, text: str) -> Iterator[Mutant]:
    """All mutants of a module."""
    starts = [0, *itertools.accumulate(len(line.encode()) for line in text.splitlines(keepends=True))]
    for node in _evaluated(ast.parse(text)):
        changed = _changed(node)
        if changed is not None:
            place: Any = node.value if isinstance(node, ast.Return) else node
            start, end = (
                starts[place.lineno - 1] + place.col_offset,
                starts[place.end_lineno - 1] + place.end_col_offset,
            )
            yield Mutant(path, place.lineno, start, end, ast.unparse(place), f"({changed})")


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run: no annotations, and no parts of f-strings, whose places Python 3.11 does not know."""
    yield node
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns") or isinstance(node, ast.JoinedStr):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST):
                yield from _evaluated(child)


def _changed(node: ast.AST) -> str | None:
    """Return the source of the changed expression; None where there is no change for it."""
    if isinstance(node, ast.Return) and node.value is not None:
        return "None" if ast.unparse(node.value) != "None" else None
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return str(not node.value if isinstance(node.value, bool) else node.value + 1)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        return ast.unparse(node.operand)
    old: Any = node.ops[0] if isinstance(node, ast.Compare) else getattr(node, "op", None)
    if not isinstance(node, ast.Compare | ast.BinOp | ast.BoolOp) or type(old) not in SWAPPED:
        return None
    copied: Any = ast.parse(ast.unparse(node), mode="eval").body
    new = SWAPPED[type(old)]()
    if isinstance(node, ast.Compare):
        copied.ops[0] = new
    else:
        copied.op = new
    return ast.unparse(copied)


def copy_tree(place: Path) -> Path:
    """Copy the files that git knows, as they are in the tree now."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=paths.ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        if (paths.ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(paths.ROOT / name, place / name)
    return place


def run_tests(tree: Path, *arguments: str, limit_s: float | None = LIMIT_S) -> int:
    """Run pytest in a copy of the tree; return its exit code, 1 where it did not come to an end."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "lib"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-m", FAST, "-p", "no:cacheprovider", *arguments]
    try:
        done = subprocess.run(
            command, check=False, cwd=tree, env=environment, capture_output=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return 1
    return done.returncode


Covering = dict[str, dict[int, set[str]]]
"""Tests by module and line; line 0 has those of the whole module, for lines that run when it is imported."""


def covering(tree: Path, tests_asked: list[str]) -> Covering:
    """Run tests once with coverage; return which of them run each line."""
    sources = [f"--cov=lib/diskbook/{name}" for name in PACKAGES]
    command = ["-n", str(CORES), *sources, "--cov-context=test", "--cov-report=", *tests_asked]
    if run_tests(tree, *command, limit_s=None):
        sys.exit("mutants: tests fail without any mutant; mend them first")
    data = coverage.CoverageData(str(tree / ".coverage"))
    data.read()
    tests: Covering = {}
    for file in data.measured_files():
        lines = {
            line: {context.split("|")[0] for context in contexts if context}
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        tests[str(Path(file).relative_to(tree.resolve()))] = {**lines, 0: set().union(*lines.values())}
    return tests


def is_killed(mutant: Mutant, tests: set[str], tree: Path) -> bool:
    """Whether the tests notice a mutant; the module is put back."""
    if not tests:
        return False
    module, names = tree / mutant.path, tree / "tests-of-mutant.txt"
    content = module.read_bytes()
    mirror = f"tests/{'/'.join(Path(mutant.path).parts[2:-1])}/test_{module.name}"
    names.write_text("\n".join(sorted(tests, key=lambda test: (not test.startswith(mirror), test))))
    try:
        module.write_bytes(content[: mutant.start] + mutant.after.encode() + content[mutant.end :])
        return run_tests(tree, "-n", "0", "-x", f"@{names.name}") != 0
    finally:
        module.write_bytes(content)


def main() -> int:
    """Make the mutants, run their tests, print the survivors; 1 where too many survive."""
    parser = argparse.ArgumentParser(prog="checks.mutants", description=__doc__)
    parser.add_argument("--mutants", type=int, default=MUTANTS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--modules", nargs="+", default=PACKAGES, help="folders or modules of lib/diskbook")
    parser.add_argument("--tests", nargs="+", default=[f"tests/{name}" for name in PACKAGES])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="diskbook-mutants-") as place:
        trees = [copy_tree(Path(place) / str(number)) for number in range(CORES)]
        every = [
            mutant
            for path in sorted((trees[0] / "lib/diskbook").rglob("*.py"))
            if str(path.relative_to(trees[0] / "lib/diskbook")).startswith(tuple(asked.modules))
            for mutant in mutants(str(path.relative_to(trees[0])), path.read_text("utf-8"))
        ]
        sample = random.Random(asked.seed).sample(every, min(asked.mutants, len(every)))
        print(
            f"{len(sample)} of {len(every):,} mutants of {', '.join(asked.modules)}, seed {asked.seed}",
            flush=True,
        )
        survivors = _survivors(sample, covering(trees[0], asked.tests), trees)
    killed = 1 - len(survivors) / len(sample)
    print(f"{killed:.0%} killed, at least {LEAST_KILLED:.0%} wanted")
    return int(killed < LEAST_KILLED)


def _survivors(sample: list[Mutant], tests: Covering, trees: list[Path]) -> list[Mutant]:
    """Mutants that no test notices, printed as they are met; one at a time in each tree."""
    free: queue.Queue[Path] = queue.Queue()
    for tree in trees:
        free.put(tree)

    def survives(mutant: Mutant) -> bool:
        of_module = tests.get(mutant.path, {})
        of_line, tree = of_module.get(mutant.line) or of_module.get(0, set()), free.get()
        try:
            is_alive = not is_killed(mutant, of_line, tree)
        finally:
            free.put(tree)
        if is_alive:
            change = f"{mutant.before}  ->  {mutant.after}"
            print(f"survived {len(of_line)} tests: {mutant.path}:{mutant.line}  {change}", flush=True)
        return is_alive

    with ThreadPoolExecutor(len(trees)) as pool:
        return [mutant for mutant, alive in zip(sample, pool.map(survives, sample), strict=True) if alive]


if __name__ == "__main__":
    sys.exit(main())
