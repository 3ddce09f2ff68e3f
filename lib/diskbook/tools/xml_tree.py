"""Reader of a tool's XML as a small tree: no entities, no document type, bounded depth. Compute only, no I/O.

Cut or faulty files are read as far as they go.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

MAX_DEPTH = 32
# An ampersand that begins no entity, and a value with a bracket in it: DiskSpd escapes neither.
_BARE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")
_VALUE = re.compile(r'="[^"<>]*[<>][^"]*"')


class Refused(ValueError):
    """The XML declares what no result needs (entities, a document type), or nests too deeply."""


@dataclass(slots=True)
class Node:
    """An element. `closed` is False for one that the file broke off in."""

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: "list[Node]" = field(default_factory=list)
    closed: bool = False

    def all(self, *path: str) -> "Iterator[Node]":
        """Elements reached by these tags from here."""
        here = [self]
        for tag in path:
            here = [child for node in here for child in node.children if child.tag == tag]
        return iter(here)

    def first(self, *path: str) -> "Node | None":
        """First of those, or None."""
        if len(path) > 1:
            return next(self.all(*path), None)
        for child in self.children:  # a hundred thousand times a report
            if child.tag == path[0]:
                return child
        return None

    def word(self, *path: str) -> str:
        """Text of the first of those; empty when there is none."""
        node = self.first(*path)
        return node.text.strip() if node else ""


@dataclass(frozen=True)
class Tree:
    """The document element, what was mended, and the line and reason where reading ended early."""

    root: Node | None
    mended: bool
    broken_line: int | None
    broken_why: str


def read(text: str) -> Tree:
    """Read one document.

    Raises Refused for a document type, an entity declaration, or nesting deeper than `MAX_DEPTH`.
    """
    mended = _VALUE.sub(lambda value: _escaped(value.group()), _BARE.sub("&amp;", text))
    builder = _Builder()
    line, why = builder.feed(mended)
    return Tree(builder.root, mended != text, line, why)


def _escaped(value: str) -> str:
    return value.replace("<", "&lt;").replace(">", "&gt;")


class _Builder:
    """Handlers of expat that grow the tree."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._open: list[Node] = []
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse

    def feed(self, text: str) -> tuple[int | None, str]:
        """Read; return line and reason of what ended it early."""
        try:
            self._parser.Parse(text.encode("utf-8", "replace"), True)
        except expat.ExpatError as error:
            return error.lineno, expat.ErrorString(error.code)
        return None, ""

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise Refused(f"elements are nested more than {MAX_DEPTH} deep")
        node = Node(tag, attributes, self._parser.CurrentLineNumber, "", [])
        if self._open:
            self._open[-1].children.append(node)
        else:
            self.root = self.root or node
        self._open.append(node)

    def _end(self, _tag: str) -> None:
        self._open.pop().closed = True

    def _characters(self, text: str) -> None:
        if self._open and not (node := self._open[-1]).children:
            node.text += text

    def _refuse(self, *_: object) -> None:
        raise Refused("it declares a document type or an entity, which no result of a tool does")
