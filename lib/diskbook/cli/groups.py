"""Groups of commands: loaded when they are called, and helpful about a name that does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from diskbook.facts.errors import unknown
from diskbook.facts.neighbours import imported


class SuggestingGroup(click.Group):
    """A group that names the nearest command for one that does not exist."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command; say which one may have been meant."""
        if args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """A group that imports a command's module when the command is called.

    As in click's documentation, "Lazily Loading Subcommands".

    Parameters
    ----------
    lazy
        Where each command stands, as `module:object`, by the command's name.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names of all commands, without importing any."""
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        command: click.Command = imported(self.lazy[cmd_name], f"'diskbook {cmd_name}'")
        return command
