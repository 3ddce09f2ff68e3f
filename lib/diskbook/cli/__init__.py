"""The command line: `diskbook run`, `diskbook emulator`, and what goes with them.

Help and mistakes are answered at once: a command's file says what it takes, and imports what does the work
(pandas, SciPy, Azure's clients: up to several seconds) in the function, when the work is asked for.
"""

from __future__ import annotations

import os
import sys

import click

from diskbook import __version__
from diskbook.cli.groups import LazyGroup
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, Stopped, guard
from diskbook.facts.neighbours import lacking

COMMANDS = {
    "batch": "diskbook.cli.batch:batch",
    "catalog": "diskbook.cli.catalog:catalog",
    "compare": "diskbook.cli.compare:compare",
    "doctor": "diskbook.cli.doctor:doctor",
    "emulator": "diskbook.emulated.command:emulator",
    "fetch": "diskbook.cli.stores:fetch",
    "figures": "diskbook.cli.results:figures",
    "import": "diskbook.cli.results:import_",
    "limits": "diskbook.cli.limits:limits",
    "list": "diskbook.cli.results:list_",
    "plan": "diskbook.cli.plan:plan",
    "post": "diskbook.cli.post:post",
    "push": "diskbook.cli.stores:push",
    "record": "diskbook.cli.results:record",
    "report": "diskbook.cli.results:report",
    "run": "diskbook.cli.run:run",
    "sample": "diskbook.cli.results:sample",
    "site": "diskbook.cli.site:site",
    "sweep": "diskbook.cli.cleanup:sweep",
    "tables": "diskbook.cli.results:tables",
    "teardown": "diskbook.cli.cleanup:teardown",
    "verify": "diskbook.cli.stores:verify",
    "why": "diskbook.cli.results:why",
    "zone-affinity": "diskbook.cli.zone_affinity:zone_affinity",
}


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Measure Azure disks honestly: provision, benchmark, analyse and tear down, scenario after scenario."""


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence, not in a traceback."""
    # Also for the notebooks' processes: the user's matplotlib settings must not change a figure.
    os.environ["MPLCONFIGDIR"] = str(paths.CACHE / "matplotlib")
    guard(sys.stdout)  # what is printed may be names from a file
    try:
        cli(prog_name="diskbook")
    except DiskbookError as error:
        click.echo(f"diskbook: {error}", err=True)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:  # some commands import an extra only when they need it
        missing = lacking(error, f"'diskbook {' '.join(sys.argv[1:2])}'")
        click.echo(f"diskbook: {missing}", err=True)
        sys.exit(missing.exit_code)
    except Stopped as stop:
        click.echo(f"diskbook: {stop}", err=True)
        sys.exit(128 + stop.number)
