"""What deletes: `teardown` for one run, `sweep` for what any run has left."""

import sys

import click

from diskbook.cli import complete
from diskbook.cli.options import examples, json_option, kept, opened, progress_apart, show_json


@click.command(epilog=examples("diskbook teardown my-run", "diskbook teardown file:///srv/lab/my-run"))
@click.argument("name", metavar="RUN", shell_complete=complete.runs)
def teardown(name: str) -> None:
    """Delete the resources that RUN has left."""
    from diskbook.facts.errors import DiskbookError
    from diskbook.hosts import stage
    from diskbook.measure.runs import stages
    from diskbook.results import session

    run, place = opened(name)
    run.check_signed()
    with session.session(run), kept(run, place):
        stages.teardown(run, click.echo)
    if (run.folder / "comparisons.csv").is_file():
        from diskbook.measure.runs import outcome

        outcome.join_catalogue(run)
    if left := stage.standing_text(run.manifest):
        raise DiskbookError(f"run {run.name} is {left}")
    click.echo("no resources of this run are left")


@click.command(
    epilog=examples("diskbook sweep", "diskbook sweep --cloud emulator --json", "diskbook sweep --delete")
)
@click.option("--cloud", help="emulator or azure; by default both, Azure where a subscription is named.")
@click.option("--emulator", "emulator_name", metavar="NAME", help="Look at this emulator only.")
@click.option("--group", metavar="NAME", help="Look at this resource group only, also one made elsewhere.")
@click.option("--delete", is_flag=True, help="Delete what the list says goes, without asking.")
@click.option(
    "--with-foreign",
    is_flag=True,
    help="Delete --group with its foreign resources too, after a question.",
)
@json_option
def sweep(
    cloud: str | None,
    emulator_name: str | None,
    group: str | None,
    delete: bool,
    with_foreign: bool,
    as_json: bool,
) -> None:
    """List or delete what runs have left behind.

    These are resource groups past their expiry or without a live run. It deletes a group only if you signed
    its tags on this computer. The group must be past its expiry, or its run has ended and was started without
    --keep. Foreign resources, which lack the tag of the run, stay, and so does their group; only
    --with-foreign deletes them. A group that was made elsewhere stays until you name it with --group. Killed
    emulators, keys of killed runs and temporary folders go too.

    Exit status: 0 when nothing is left, 3 when something is (listed, or not deleted), 1 when a cloud did not
    answer, 2 when the command was wrong.
    """
    from diskbook.cli import document_of
    from diskbook.facts.errors import UsageError
    from diskbook.measure.runs import sweep as sweep_runs

    if with_foreign and (as_json or not (delete and group)):
        raise UsageError("--with-foreign asks before it deletes one group: add --delete --group, no --json")
    leftovers = sweep_runs.find(cloud, emulator_name, group, with_foreign=with_foreign)
    if as_json:
        with progress_apart(as_json):
            failed = sweep_runs.remove(leftovers, click.echo) if delete else []
        show_json(document_of.sweep(leftovers, failed))
        sys.exit(3 if failed or (leftovers.goes and not delete) else 0)
    click.echo(sweep_runs.sweep_text(leftovers))
    if not leftovers.goes:
        return
    if not delete:
        named = f" --group {group}" if group else ""
        click.echo(f"{sweep_runs.going(leftovers)} to go: 'diskbook sweep --delete{named}' deletes")
        sys.exit(3)
    if with_foreign:
        click.confirm(sweep_runs.foreign_question(leftovers), abort=True)
    failed = sweep_runs.remove(leftovers, click.echo)
    for text in failed:
        click.echo(f"left: {text}", err=True)
    if failed:
        sys.exit(3)
    click.echo(f"{sweep_runs.going(leftovers)} deleted, and read back")
