"""Completion of names in bash, zsh and fish, by click's protocol: quick, so nothing is imported but paths.

A command gives `shell_complete=scenarios` to its argument or option. Names are read from folders afresh
at each press of the key, and no file is opened.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from diskbook.facts import paths

Items = list[CompletionItem]


def scenarios(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Scenarios that come with the workbook; from a slash on, files."""
    if os.sep in incomplete or incomplete.startswith("."):
        return [CompletionItem(incomplete, type="file")]
    return _beginning(incomplete, (path.stem for path in paths.SCENARIOS.glob("*.toml")))


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Runs in the run folder; from a slash on, folders."""
    if os.sep in incomplete or incomplete.startswith("."):
        return [CompletionItem(incomplete, type="dir")]
    return _beginning(incomplete, (path.parent.name for path in paths.runs_root().glob("*/manifest.json")))


def figures(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Figures of the run that stands before on the line, else of all runs."""
    run = str(ctx.params.get("name") or "*")
    root = Path(run) if os.sep in run else paths.runs_root()
    drawn = root.glob("figures/*.svg" if os.sep in run else f"{run}/figures/*.svg")
    return _beginning(incomplete, (path.stem for path in drawn))


def samples(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Scenarios that have a committed sample run."""
    names = (path.name.removeprefix("sample-") for path in paths.RUNS.glob("sample-*"))
    return _beginning(incomplete, names)


def profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Profiles of the emulator."""
    return _beginning(incomplete, (path.stem for path in paths.PROFILES.glob("*.toml")))


def presets(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Presets that every scenario has, and the one that some have."""
    return _beginning(incomplete, ("answer", "quick", "standard", "full"))


def clouds(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Where a run can be."""
    from diskbook.cloud import kinds

    return _beginning(incomplete, kinds.names())


def _beginning(incomplete: str, names: Iterable[str]) -> Items:
    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(incomplete)]
