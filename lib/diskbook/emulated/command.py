"""`diskbook emulator`: emulators started, listed and stopped by hand."""

import json
from pathlib import Path

import click

from diskbook.cli import complete
from diskbook.cli.groups import SuggestingGroup
from diskbook.cli.options import examples, json_option, show_json, time_scale


@click.group(cls=SuggestingGroup)
def emulator() -> None:
    """Start, list and stop emulators by hand."""


@emulator.command(
    epilog=examples("diskbook emulator start", "diskbook emulator start noisy --profile azure-noise-2024")
)
@click.argument("name", default="default")
@click.option(
    "--profile",
    default="default",
    show_default=True,
    shell_complete=complete.profiles,
    help="Ground-truth profile for the emulator.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of its noise.")
@time_scale
@click.option("--faults", type=click.Path(exists=True, dir_okay=False), help="JSON list of faults to inject.")
def start(name: str, profile: str, seed: int, time_scale: float | None, faults: str | None) -> None:
    """Start an emulator called NAME; it runs until it is stopped."""
    from diskbook_emulator import jump, lifecycle

    planted = json.loads(Path(faults).read_text("utf-8")) if faults else None
    started = lifecycle.start(name, profile=profile, seed=seed, time_scale=time_scale, faults=planted or ())
    click.echo(f"emulator {name} (emulated, profile {profile}) answers at {started.endpoint}")
    for line in jump.words(started.folder):
        click.echo(line)


@emulator.command(epilog=examples("diskbook emulator status", "diskbook emulator status --json"))
@json_option
def status(as_json: bool) -> None:
    """List the emulators of this user."""
    from diskbook_emulator import lifecycle

    rows = lifecycle.status()
    if as_json:
        from diskbook.cli.documents import EmulatorRow, Emulators

        listed = [
            EmulatorRow(name=row.name, state=row.state, profile=row.profile, endpoint=row.endpoint or "")
            for row in rows
        ]
        show_json(Emulators(emulators=listed))
        return
    for row in rows:
        click.echo(f"{row.name}  {row.state}  {row.profile}  {row.endpoint or ''}")
    if not rows:
        click.echo("no emulator runs")


@emulator.command(epilog=examples("diskbook emulator stop", "diskbook emulator stop noisy --keep-state"))
@click.argument("name", default="default")
@click.option("--keep-state", is_flag=True, help="Keep its folder, so that a later start continues with it.")
def stop(name: str, keep_state: bool) -> None:
    """Stop the emulator called NAME, and remove its files."""
    from diskbook_emulator import lifecycle

    lifecycle.stop(name, keep_state=keep_state)
    click.echo(f"emulator {name} is stopped")
