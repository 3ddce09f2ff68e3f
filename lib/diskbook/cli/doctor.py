"""`diskbook doctor`: is all there that a run needs, before anyone waits for one."""

import sys
from typing import Any

import click

from diskbook.cli import complete
from diskbook.cli.options import (
    company,
    expires,
    max_cost,
    overrides,
    preset,
    refuse_given,
    settings,
    ssh_source,
    subscription,
)
from diskbook.cli.output import examples, json_option, show_json
from diskbook.facts.errors import UsageError


@click.command(epilog=examples("diskbook doctor", "diskbook doctor local-disk --json"))
@click.argument("scenario", default="zone-disks", shell_complete=complete.scenarios)
@click.option("--cloud", help="azure; without it this machine is looked at, for runs on the emulator.")
@preset
@settings
@subscription
@company
@ssh_source
@max_cost
@expires
@click.option(
    "--try-ssh", metavar="HOST", help="Azure: try a TCP connection to port 22 of this host, e.g. github.com."
)
@json_option
def doctor(scenario: str, cloud: str | None, **options: Any) -> None:
    """Check the prerequisites of a run of SCENARIO. Nothing is created.

    Each line is ok, or says what to do. Ends with 0 when all are ok, else with 1.
    """
    from diskbook.cli import document_of
    from diskbook.cloud import kinds
    from diskbook.design import scenario_file
    from diskbook.measure.doctor import all_ok, text_of

    if cloud == "inventory":
        raise UsageError(
            "--cloud inventory: doctor looks at azure, or at this machine; 'diskbook plan SCENARIO --cloud "
            "inventory' looks at hosts of your own"
        )
    if cloud != "azure":
        refuse_given(click.get_current_context(), ("try_ssh",), "works with --cloud azure only")
    kind = kinds.get(cloud or "emulator")
    chosen = scenario_file.load(scenario, options["preset"], overrides(options), asks_azure=kind.asks_azure)
    rows = kind.doctor(
        chosen,
        kinds.Asked(
            *(options[name] for name in ("subscription", "ssh_source", "max_cost_usd", "expires", "try_ssh"))
        ),
    )
    subject = f"{chosen.name}, preset {chosen.preset}, {kind.where}"
    if options["as_json"]:
        show_json(document_of.doctor(subject, rows))
    else:
        click.echo(text_of(subject, rows))
    if not all_ok(rows):
        sys.exit(1)
