"""`diskbook doctor`: is all there that a run needs, before anyone waits for one."""

from __future__ import annotations

import sys
from typing import Any

import click

from diskbook.cli import complete
from diskbook.cli.examples import examples
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
from diskbook.cli.output import json_option, show_json
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
    """Look whether all is there that a run of SCENARIO (zone-disks) needs. Nothing is created.

    Each line is ok, or says what to do. Ends with 0 when all are ok, else with 1.
    """
    from datetime import date

    from diskbook import load
    from diskbook.measure.doctor import cloud as doctor_cloud, machine

    if cloud not in (None, "emulator", "azure"):
        raise UsageError(
            f"--cloud {cloud}: doctor looks at azure, or at this machine; 'diskbook plan SCENARIO --cloud "
            "inventory' looks at hosts of your own"
        )
    if cloud != "azure":
        refuse_given(click.get_current_context(), ("try_ssh",), "works with --cloud azure only")
    chosen = load.load(scenario, options["preset"], overrides(options), asks_azure=cloud == "azure")
    if cloud == "azure":
        asked = doctor_cloud.Asked(
            options["subscription"],
            options["ssh_source"],
            options["max_cost_usd"],
            options["expires"],
            options["try_ssh"],
        )
        rows = doctor_cloud.checks(chosen, asked, date.today())
    else:
        rows = machine.checks(chosen)
    where = "on Azure" if cloud == "azure" else "on the emulator, on this machine"
    subject = f"{chosen.name}, preset {chosen.preset}, {where}"
    _show(subject, rows, options["as_json"])


def _show(subject: str, rows: list[Any], as_json: bool) -> None:
    """Print the checks; end with 1 when one of them fails."""
    from diskbook.cli import document_of
    from diskbook.measure.doctor import check

    if as_json:
        show_json(document_of.doctor(subject, rows))
    else:
        click.echo(check.text_of(subject, rows))
    if not check.all_ok(rows):
        sys.exit(1)
