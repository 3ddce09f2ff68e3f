"""How commands print: sentences as wide as the terminal, or one JSON document and nothing else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from diskbook.facts.table_writers import terminal_width, wrapped

if TYPE_CHECKING:
    from diskbook.cli.documents import Document


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON document (docs/reference/json.md) in place of sentences.",
)


def show(text: str) -> None:
    """Print sentences and tables; long lines are broken between words at the terminal's width."""
    click.echo(wrapped(text, terminal_width()))


def show_json(document: Document) -> None:
    """Print a document, as it is."""
    click.echo(document.text)


@contextlib.contextmanager
def progress_apart(as_json: bool) -> Iterator[None]:
    """Send to standard error what is printed on the way, where standard output is to hold JSON alone."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield


HEAD = "Examples:"


def examples(*lines: str) -> str:
    """Put command lines, as they are typed, into the form of an epilog that click does not break."""
    return "\n".join(["\b", HEAD, *(f"  {line}" for line in lines)])
