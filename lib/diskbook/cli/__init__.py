"""The command line: `diskbook run`, `diskbook emulator`, and what goes with them.

Help and mistakes are answered at once: a command's file says what it takes, and imports what does the work
(pandas, SciPy, Azure's clients: up to several seconds) in the function, when the work is asked for.
"""

import os
import sys

import click

from diskbook import __version__
from diskbook.cli.groups import LazyGroup
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, Stopped, guard
from diskbook.facts.neighbours import lacking

_SHORT = {
    "Start": {"run": "run:run", "list": "results:list_", "report": "results:report", "why": "results:why"},
    "Compare": {
        "compare": "compare:compare", "pool": "diskbook.sharing.commands:pool", "figures": "results:figures",
        "post": "diskbook.publish.commands:post", "site": "diskbook.publish.commands:site",
    },
    "Prepare": {
        "plan": "plan:plan", "doctor": "plan:doctor", "import": "diskbook.importing.commands:import_",
        "batch": "diskbook.batch.commands:batch",
        "record": "diskbook.sharing.commands:record", "share": "diskbook.sharing.commands:share",
    },
    "Ask": {"limits": "plan:limits", "choose": "plan:choose"},
    "Store": {
        "push": "diskbook.batch.commands:push", "fetch": "diskbook.batch.commands:fetch",
        "verify": "diskbook.batch.commands:verify",
    },
    "Upkeep": {
        "catalog": "diskbook.batch.commands:catalog", "emulator": "diskbook.emulated.command:emulator",
        "sample": "diskbook.publish.commands:sample", "sweep": "cleanup:sweep", "tables": "results:tables",
        "teardown": "cleanup:teardown", "zone-affinity": "diskbook.zone_affinity.commands:zone_affinity",
    },
}  # fmt: skip
"""Commands by their section of the help, in the order in which a newcomer needs them, as `module:object`."""
SECTIONS = {
    title: {name: where if "." in where else f"diskbook.cli.{where}" for name, where in commands.items()}
    for title, commands in _SHORT.items()
}
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
