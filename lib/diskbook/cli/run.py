"""`diskbook run`: a scenario from provisioning to tear-down."""

from typing import Any

import click

from diskbook.cli import complete
from diskbook.cli.groups import SectionedCommand
from diskbook.cli.options import (
    checked_by,
    cloud,
    company,
    examples,
    expires,
    hosts,
    kept,
    max_cost,
    opened,
    overrides,
    preset,
    refuse_given,
    settings,
    ssh_source,
    subscription,
    time_scale,
)
from diskbook.facts import neighbours
from diskbook.facts.errors import UsageError

_OF_CLOUDS = {
    "emulator": ("emulator_name", "emulator_profile", "emulator_seed", "time_scale"),
    "azure": ("subscription", "ssh_source"),
    "inventory": ("hosts", "folder"),
}
_SECTIONS = {
    "On the emulator": _OF_CLOUDS["emulator"],
    "On Azure": (*_OF_CLOUDS["azure"], "tags", "resource_group", "record"),
    "On hosts of your own": _OF_CLOUDS["inventory"],
    "Cost and safety": ("max_cost_usd", "expires", "keep", "debug_minutes"),
}
_OF_A_NEW_RUN = ("cloud", "preset", "name", *_OF_CLOUDS["emulator"], *_OF_CLOUDS["inventory"])


@click.command(
    cls=SectionedCommand,
    sections=_SECTIONS,
    epilog=examples(
        "diskbook run zone-disks",
        "diskbook run zone-disks --preset standard --name second --set design.replicates=5",
        "diskbook run local-disk --cloud inventory --folder .",
        "diskbook run --resume my-run",
        "diskbook run --resume file:///srv/lab/my-run",
        "diskbook run zone-disks --store file:///srv/lab",
    ),
)
@click.argument("scenario", required=False, shell_complete=complete.scenarios)
@cloud
@preset
@click.option("--name", help="Name of the run; by default the scenario, the time and four digits.")
@settings
@subscription
@company
@ssh_source
@hosts
@max_cost
@click.option("--emulator", "emulator_name", metavar="NAME", help="Use this running emulator.")
@click.option(
    "--emulator-profile",
    shell_complete=complete.profiles,
    help="Ground-truth profile for the emulator; by default 'default'.",
)
@click.option("--emulator-seed", type=int, help="Seed of the emulator's noise; by default the design's.")
@time_scale
@expires
@click.option("--record", is_flag=True, help="Record each exchange with Azure, scrubbed, in arm.jsonl.gz.")
@click.option("--keep", is_flag=True, help="Keep machines and disks, even if the run fails.")
@click.option(
    "--debug-minutes",
    type=float,
    metavar="MINUTES",
    callback=checked_by("diskbook.measure.runs.debug:check_minutes"),
    help="If the run fails, keep the machines for inspection; at most 60.",
)
@click.option(
    "--resume",
    metavar="RUN",
    shell_complete=complete.runs,
    help="Resume an interrupted run, also one in a store.",
)
@click.option("--store", metavar="STORE", help="Also keep the run in this store while it works.")
@click.pass_context
def run(ctx: click.Context, scenario: str | None, resume: str | None, keep: bool, **options: Any) -> None:
    """Run SCENARIO: provision, benchmark, analyse, tear down.

    SCENARIO is a name, or DIR/NAME.toml. In the second case, 3-analyse-NAME.ipynb and NAME.py in DIR analyse
    the run, if they exist. They run as code; name the file again with --resume.

    It says first what it does, how long that takes and what it costs. With --resume, --set changes a run
    that has no trials yet, such as one that Azure had no room for.
    """
    _refuse_unused(ctx, resume, options["cloud"])
    is_file = scenario is None or scenario.endswith(".toml")
    if resume and is_file and not overrides(options) and _is_finished(resume, scenario):
        return
    from diskbook.design import scenario_file
    from diskbook.measure.runs import pipeline

    if (scenario is None) == (resume is None) and not (resume and scenario_file.is_file(str(scenario))):
        raise UsageError("name a scenario, or a run to --resume; 'diskbook list' shows both")
    azure = {key: options[key] for key in ("subscription", "ssh_source") if options[key] is not None}
    folder, place = opened(resume) if resume else (_begin(str(scenario), options, azure), None)
    with pipeline.dropped_if_refused(folder):
        _note(folder, options, azure, resumed=resume is not None, file=scenario)
        click.echo(pipeline.announcement(folder, keep=keep))
        with kept(folder, place, options["store"]):
            outcome = pipeline.execute(folder, keep=keep, scenario=scenario)
    click.echo(outcome.words)
    _say_standing(folder)


def _refuse_unused(ctx: click.Context, resume: str | None, cloud: str) -> None:
    """Refuse options that this run would not use."""
    if ctx.params["keep"]:
        refuse_given(ctx, ("debug_minutes",), "works without --keep only, which keeps the machines anyway")
    if resume:
        refuse_given(ctx, _OF_A_NEW_RUN, f"cannot change run {resume}, which has begun: start a new run")
        return
    if cloud == "inventory":
        of_clouds = ("debug_minutes", "tags", "resource_group")
        refuse_given(ctx, of_clouds, "works with --cloud azure or emulator only")
    for of, names in _OF_CLOUDS.items():
        if of != cloud:
            refuse_given(ctx, names, f"works with --cloud {of} only")


def _say_standing(folder: Any) -> None:
    """Say what of a run stands after it, and how it goes."""
    from diskbook.cloud.azure import expiry
    from diskbook.hosts import stage

    for standing, how in (
        (stage.standing_text(folder.manifest), "removes that"),
        (expiry.uptime_text(folder.manifest), "deletes its machines"),
    ):
        if standing:
            click.echo(f"run {folder.name} {standing}; 'diskbook teardown {folder.name}' {how}")


def _is_finished(name: str, file: str | None) -> bool:
    """Say so of a run that has come to its end, before what a run needs is imported."""
    from diskbook.measure.runs import finished

    folder = finished.folder_of(name)
    when = finished.since(folder, file_named=file is not None)
    if when:
        click.echo(finished.words(folder, when))
    return bool(when)


def _note(
    folder: Any, options: dict[str, Any], azure: dict[str, str], *, resumed: bool, file: str | None
) -> None:
    """Say what is run, and keep in the manifest what later stages go by."""
    from diskbook.cloud import connect
    from diskbook.design.vocabulary import Provenance
    from diskbook.measure.runs import begin, debug
    from diskbook.report.analysis import companion_files
    from diskbook.report.show import run as show_run

    folder.check_signed()
    if resumed and (changed := overrides(options)):
        begin.change_settings(folder, file, changed)
    connect.update_on_resume(folder, azure)
    debug.note(folder, options["debug_minutes"])
    if options["expires"] is not None:
        folder.update_manifest(expires_h=options["expires"])
    click.echo(f"run {folder.name} ({folder.manifest['provenance']}), folder {folder.folder}")
    if options["record"]:
        neighbours.recording.begin(folder)
    if options["max_cost_usd"] is not None:
        folder.update_manifest(max_cost_usd=options["max_cost_usd"])
    click.echo("\n".join([show_run.target_text(folder.manifest), *companion_files.missing(folder.scenario)]))
    if folder.manifest["provenance"] == Provenance.IMPORTED:
        raise UsageError(f"run {folder.name} was imported: there is nothing to resume")


def _begin(scenario: str, options: dict[str, Any], azure: dict[str, str]) -> Any:
    from diskbook.measure.runs import begin, stages
    from diskbook.results import run as runs

    if options["name"] is not None:
        begin.check_name(options["name"])
    name = options["name"] or runs.new_name(scenario.rsplit("/", 1)[-1].removesuffix(".toml"))
    if runs.folder_of(name).exists():
        raise UsageError(f"run {name} exists already; resume it with --resume {name}, or choose another name")
    asked = {
        "name": options["emulator_name"],
        "profile": options["emulator_profile"],
        "seed": options["emulator_seed"],
        "time_scale": options["time_scale"],
    }
    emulator = {key: value for key, value in asked.items() if value is not None}
    inventory = {key: options[key] for key in ("hosts", "folder") if options[key] is not None}
    return stages.begin(
        name, scenario, options["cloud"], options["preset"], overrides(options), emulator, azure, inventory
    )
