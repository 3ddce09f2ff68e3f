"""How commands print: sentences as wide as the terminal."""

from __future__ import annotations

import click

from diskbook.base.wrap import terminal_width, wrapped


def show(text: str) -> None:
    """Print sentences and tables; long lines are broken between words at the terminal's width."""
    click.echo(wrapped(text, terminal_width()))
