"""Groups of commands: loaded when they are called, helpful about wrong names and unwritable folders."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from diskbook.facts.errors import unknown, unusable
from diskbook.facts.neighbours import imported


class SuggestingGroup(click.Group):
    """A group that names the nearest command for one that does not exist."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command; say which one may have been meant."""
        if args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; a file or folder that cannot be used ends in one sentence."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            raise unusable(error) or error from error


class LazyGroup(SuggestingGroup):
    """A group that imports a command's module when the command is called.

    As in click's documentation, "Lazily Loading Subcommands".

    - `sections`: titles of the help, each with where its commands stand, as `module:object`, by the command's
      name.
    """

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self.lazy = {name: where for commands in sections.values() for name, where in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names of all commands, without importing any."""
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        command: click.Command = imported(self.lazy[cmd_name], f"'diskbook {cmd_name}'")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands section by section, each with its whole first sentence."""
        width = max(map(len, self.lazy))
        for title, names in self.sections.items():
            commands = [command for name in names if (command := self.get_command(ctx, name))]
            rows = [(f"{command.name:<{width}}", command.get_short_help_str(200)) for command in commands]
            with formatter.section(title):
                formatter.write_dl(rows)


class SectionedCommand(click.Command):
    """A command whose help shows some options below the others, in `sections`: names by their title."""

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options section by section."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {param.name: param.get_help_record(ctx) for param in options}
        apart = {name for names in self.sections.values() for name in names}
        own = [name for name in records if name not in apart]
        for title, names in {"Options": own, **self.sections}.items():
            with formatter.section(title):
                formatter.write_dl([row for name in names if (row := records[name])])
