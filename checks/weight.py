"""What the house weighs (`make house`): lines, modules, rooms and import chains, and the budget of each.

`checks/budget.toml` has a limit on the lines of each package. A test fails when a package exceeds its limit.
Lines are those of Python files. A room is a package at the top of `lib/diskbook`. The core is `lib/diskbook`
without its neighbours.
"""

import ast
import functools
import io
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from diskbook.facts import paths

BUDGET = paths.ROOT / "checks/budget.toml"
ROOTS = {"diskbook": paths.ROOT / "lib", "diskbook_emulator": paths.ROOT / "lib", "checks": paths.ROOT}
NEIGHBOURS = ("batch", "choose", "clusters", "emulated", "importing", "publish", "sharing", "zone_affinity")
LONGEST_CHAIN = 25
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_SHOWN = "import sys, diskbook.report.analysis.run, diskbook.report.show; print(*sys.modules)"


@dataclass(frozen=True)
class Module:
    """One Python file: its dotted name, and the modules of the project that it imports."""

    name: str
    path: Path
    text: str

    @property
    def package(self) -> str:
        """Top package: `diskbook.<room>`, `diskbook_emulator` or `checks`."""
        parts = self.name.split(".")
        is_room = parts[0] == "diskbook" and (len(parts) > 2 or self.path.name == "__init__.py")
        return ".".join(parts[:2] if is_room else parts[:1])

    @property
    def is_core(self) -> bool:
        """Whether it belongs to `lib/diskbook` and to no neighbour."""
        parts = self.name.split(".")
        return parts[0] == "diskbook" and (len(parts) == 1 or parts[1] not in NEIGHBOURS)

    @functools.cached_property
    def lines(self) -> int:
        return self.text.count("\n")

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def code_lines(self) -> int:
        """Lines that hold code: no blank lines, comments or docstrings."""
        docstrings: set[int] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        code: set[int] = set()
        for token in tokens:
            if token.type not in _NO_CODE:
                code.update(range(token.start[0], token.end[0] + 1))
        return len(code - docstrings) - 1  # the end of the file is a token, too

    def functions(self) -> int:
        return sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(self.tree))


def modules() -> dict[str, Module]:
    """Read all modules of the project, by dotted name."""
    read = {}
    for root, folder in ROOTS.items():
        for path in sorted((folder / root).rglob("*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
            read[name] = Module(name, path, path.read_text("utf-8"))
    return read


def imports(module: Module, known: Iterable[str]) -> set[str]:
    """Return the modules of the project that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names.update(inner & set(known) or {node.module})
    return (names & set(known)) - {module.name}


def longest_chain(graph: Mapping[str, Iterable[str]]) -> int:
    """Return the number of modules on the longest path of imports; the graph has no circle."""

    @functools.cache
    def depth(name: str) -> int:
        return 1 + max((depth(other) for other in graph[name]), default=0)

    return max((depth(name) for name in graph), default=0)


def imported_to_show(known: Mapping[str, Module]) -> list[Module]:
    """Return the modules that are loaded by analysing and showing a run."""
    done = subprocess.run([sys.executable, "-c", _SHOWN], capture_output=True, text=True, check=True)
    return [known[name] for name in done.stdout.split() if name in known]


def totals(known: Mapping[str, Module]) -> dict[str, int]:
    """Return the figures of the whole house, by what they are."""
    graph = {name: imports(module, known.keys()) for name, module in known.items()}
    core = [module for module in known.values() if module.is_core]
    shown = imported_to_show(known)
    stems = Counter(module.path.name for module in known.values() if module.path.name != "__init__.py")
    return {
        "Python lines in lib/ and checks/": sum(module.lines for module in known.values()),
        "of these in the core": sum(module.lines for module in core),
        "modules": len(known),
        "modules of the core": len(core),
        "rooms of the core": len({module.package for module in core} - {"diskbook"}),
        "longest import chain": longest_chain(graph),
        "modules that analysing and showing a run imports": len(shown),
        "lines of these": sum(module.lines for module in shown),
        "functions": sum(module.functions() for module in known.values()),
        "file names that several modules share": sum(count > 1 for count in stems.values()),
    }


def per_package(known: Mapping[str, Module]) -> dict[str, tuple[int, int, int, int]]:
    """Return lines, code lines, modules and functions of each package."""
    by_package: dict[str, list[Module]] = {}
    for module in known.values():
        by_package.setdefault(module.package, []).append(module)
    return {
        package: (
            sum(module.lines for module in inside),
            sum(module.code_lines() for module in inside),
            len(inside),
            sum(module.functions() for module in inside),
        )
        for package, inside in sorted(by_package.items())
    }


def limits() -> dict[str, int]:
    """Read the limits on lines: of each package, and "total"."""
    return dict(tomllib.loads(BUDGET.read_text("utf-8"))["lines"])


def too_long(known: Mapping[str, Module]) -> str:
    """Say that a chain of imports is longer than it may be; empty where none is."""
    longest = longest_chain({name: imports(module, known.keys()) for name, module in known.items()})
    sentence = f"a chain of imports has {longest} modules; {LONGEST_CHAIN} are allowed"
    return sentence if longest > LONGEST_CHAIN else ""


def exceeded(lines: Mapping[str, int], limit: Mapping[str, int]) -> list[str]:
    """Say in a sentence each which package exceeds its limit, or has none."""
    sentences = [
        f"{package} has {count:,} lines, its limit is {limit[package]:,}: delete what it no longer needs"
        for package, count in lines.items()
        if package in limit and count > limit[package]
    ]
    sentences += [
        f"{package} has no limit in checks/budget.toml" for package in lines if package not in limit
    ]
    sentences += [
        f"checks/budget.toml limits {package}, which does not exist" for package in limit.keys() - lines
    ]
    return sentences


def lines_by_package(known: Mapping[str, Module]) -> dict[str, int]:
    """Return the lines of each package, and of all as "total"."""
    lines = Counter[str]()
    for module in known.values():
        lines[module.package] += module.lines
    return {**lines, "total": sum(lines.values())}


def main() -> int:
    """Print both tables; return 1 where a package exceeds its limit."""
    known, limit = modules(), limits()
    for name, value in totals(known).items():
        print(f"{name:<50} {value:>8,}")
    print(f"\n{'package':<24} {'lines':>8} {'limit':>8} {'code':>8} {'modules':>8} {'functions':>10}")
    for package, (lines, code, count, functions) in per_package(known).items():
        most = f"{limit[package]:,}" if package in limit else "-"
        print(f"{package:<24} {lines:>8,} {most:>8} {code:>8,} {count:>8,} {functions:>10,}")
    over = [*exceeded(lines_by_package(known), limit), *filter(None, [too_long(known)])]
    print(*over, sep="\n", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
