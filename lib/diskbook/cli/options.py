"""Options that several commands share, and how commands print: sentences, or one JSON document alone."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from diskbook.cli import complete
from diskbook.facts import neighbours, paths, redact
from diskbook.facts.errors import UsageError
from diskbook.facts.neighbours import imported
from diskbook.facts.table_writers import terminal_width, wrapped

if TYPE_CHECKING:
    from diskbook.cli.documents import Document


def checked_by(where: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Make the callback of an option whose value, if given, a function checks: `module:function`."""

    def check(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        return None if value is None else imported(where, str(param.opts[0]))(value)

    return check


max_cost = click.option(
    "--max-cost-usd",
    type=float,
    metavar="USD",
    callback=checked_by("diskbook.cost.budget:given_limit"),
    help="Stop before anything is created if the expected cost with a margin is higher; on Azure 50.",
)

expires = click.option(
    "--expires",
    type=float,
    metavar="HOURS",
    callback=checked_by("diskbook.cloud.azure.expiry:check_hours"),
    help="Shut the machines down after this time, 1 to 72; by default 12.",
)


preset = click.option(
    "--preset",
    shell_complete=complete.presets,
    default="quick",
    show_default=True,
    help="quick, standard or full; answer and sample where the scenario has them.",
)

cloud = click.option(
    "--cloud",
    default="emulator",
    show_default=True,
    shell_complete=complete.clouds,
    help="emulator, azure or inventory.",
)

settings = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override, e.g. design.replicates=2."
)

time_scale = click.option(
    "--time-scale",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="FACTOR",
    help="Scale of the emulator's delays; by default 0.01.",
)

subscription = click.option(
    "--subscription", metavar="ID", help="Use this subscription, not the environment's."
)

ssh_source = click.option(
    "--ssh-source", metavar="CIDR", help="Addresses from which the machines accept SSH."
)

Decorator = Callable[[Any], Any]


def _all(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order given."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


company = _all(
    click.option(
        "--tag",
        "tags",
        multiple=True,
        metavar="NAME=VALUE",
        help="Add this tag to all resources; may be repeated.",
    ),
    click.option(
        "--resource-group",
        metavar="NAME",
        help="Create everything in this existing group; diskbook never deletes the group.",
    ),
)

hosts = _all(
    click.option("--hosts", metavar="FILE", help="Measure on the hosts that this file names."),
    click.option("--folder", metavar="PATH", help="Without --hosts: measure in this folder of this machine."),
)

limit_names = _all(
    click.option(
        "--disk-sku", help="What was measured, e.g. Premium_LRS; with --size-gib its limits are known."
    ),
    click.option("--size-gib", type=int, help="Size of the disk."),
    click.option("--vm-size", help="The machine, e.g. Standard_D4as_v4: its limits are known then."),
)
limit_numbers = _all(
    click.option("--vm-iops", type=float, help="Limit of the machine that no table has."),
    click.option("--vm-mb-s", type=float, help="The same, in 10^6 bytes/s."),
    click.option("--disk-iops", type=float, help="Limit of the disk that no table has."),
    click.option("--disk-mb-s", type=float, help="The same, in 10^6 bytes/s."),
)


def refuse_given(ctx: click.Context, names: Collection[str], why: str) -> None:
    """Raise UsageError for options given that the command would not use; `why` follows their names."""
    given = [
        param.opts[0]
        for param in ctx.command.params
        if param.name in names and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(f"{' and '.join(given)} {why}")


def overrides(options: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides of the scenario that `--set`, `--tag` and `--resource-group` ask for."""
    company: dict[str, Any] = {}
    if options["tags"]:
        company["azure.tags"] = dict(_tag(text) for text in options["tags"])
    if options["resource_group"] is not None:
        company["azure.resource_group"] = options["resource_group"]
    return company | dict(setting(text) for text in options["settings"])


def _tag(text: str) -> tuple[str, str]:
    """Split the NAME=VALUE of `--tag`; a value may have further equals signs, and be empty."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--tag {redact.hide(text)}: write NAME=VALUE, for example --tag costcenter=4711")
    redact.refuse({name: value}, "--tag ")
    return name, value


def setting(text: str) -> tuple[str, Any]:
    """Split the KEY=VALUE of `--set`; the value is JSON, or else a string."""
    key, equals, value = text.partition("=")
    if not equals:
        given = redact.hide(text)
        raise UsageError(f"--set {given}: write KEY=VALUE, for example --set design.replicates=2")
    redact.refuse({key: value}, "--set ")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def opened(name: str) -> tuple[Any, Any]:
    """Open a run to resume it; return it and its address, which is None for a run of this machine."""
    if paths.is_address(name):
        return cast("tuple[Any, Any]", neighbours.stored_runs.working_copy(name))
    from diskbook.results import run as runs

    return runs.open_run(name), None


def kept(run: Any, place: Any, store: str | None = None) -> AbstractContextManager[None]:
    """Keep a run where it is, or in a store that is named, for the length of a with block."""
    if place is None and store is None:
        return nullcontext()
    stored: Any = neighbours.stored_runs
    place = place if store is None else stored.place_of(run, store)
    return cast("AbstractContextManager[None]", stored.kept(run, place))


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
