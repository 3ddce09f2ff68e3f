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
from diskbook.facts.errors import DiskbookError, Stopped
from diskbook.facts.lazy_import import lacking
from diskbook.facts.untrusted_text import guard

SECTIONS = {
    "Start": {
        "run": "diskbook.cli.run:run",
        "list": "diskbook.cli.results:list_",
        "report": "diskbook.cli.results:report",
        "why": "diskbook.cli.results:why",
    },
    "Compare": {
        "compare": "diskbook.cli.compare:compare",
        "pool": "diskbook.cli.compare:pool",
        "figures": "diskbook.cli.results:figures",
        "post": "diskbook.cli.post:post",
        "site": "diskbook.cli.site:site",
    },
    "Prepare": {
        "plan": "diskbook.cli.plan:plan",
        "doctor": "diskbook.cli.doctor:doctor",
        "import": "diskbook.cli.results:import_",
        "batch": "diskbook.cli.batch:batch",
        "record": "diskbook.cli.results:record",
    },
    "Ask": {
        "limits": "diskbook.cli.limits:limits",
    },
    "Store": {
        "push": "diskbook.cli.stores:push",
        "fetch": "diskbook.cli.stores:fetch",
        "verify": "diskbook.cli.stores:verify",
    },
    "Upkeep": {
        "catalog": "diskbook.cli.catalog:catalog",
        "emulator": "diskbook.emulated.command:emulator",
        "sample": "diskbook.cli.results:sample",
        "sweep": "diskbook.cli.cleanup:sweep",
        "tables": "diskbook.cli.results:tables",
        "teardown": "diskbook.cli.cleanup:teardown",
        "zone-affinity": "diskbook.cli.zone_affinity:zone_affinity",
    },
}
"""Commands by their section of the help, in the order in which a newcomer needs them."""
COMMANDS = dict(sorted((name, where) for commands in SECTIONS.values() for name, where in commands.items()))


@click.group(cls=LazyGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
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
