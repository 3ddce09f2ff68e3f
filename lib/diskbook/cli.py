"""The command line: `diskbook run`, `diskbook emulator`, and what goes with them."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from diskbook import __version__
from diskbook.base import paths, redact
from diskbook.base.errors import DiskbookError, Stopped, UsageError


class Suggesting(click.Group):
    """A group that names the nearest command for one that does not exist."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command; say which one may have been meant."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from diskbook.base.errors import unknown

            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


@click.group(cls=Suggesting, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Measure Azure disks honestly: provision, benchmark, analyse and tear down, scenario after scenario."""


def _hours(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    from diskbook.azure import expiry

    return None if value is None else expiry.check_hours(value)


def _usd(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    from diskbook.cost import budget

    return None if value is None else budget.given_limit(value)


_max_cost = click.option(
    "--max-cost-usd",
    type=float,
    metavar="USD",
    callback=_usd,
    help="Stop before anything is created if it is expected to cost more, with a margin; on Azure 50.",
)


@cli.command()
@click.argument("scenario", required=False)
@click.option("--cloud", default="emulator", show_default=True, help="emulator or azure.")
@click.option("--preset", default="quick", show_default=True, help="quick, standard or full.")
@click.option("--name", help="Name of the run; by default scenario, time and four digits.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override, e.g. design.replicates=2."
)
@click.option("--subscription", metavar="ID", help="Azure: use this subscription, not the environment's.")
@click.option("--ssh-source", metavar="CIDR", help="Azure: from where the machines let in SSH.")
@_max_cost
@click.option("--emulator", "emulator_name", metavar="NAME", help="Use this running emulator.")
@click.option("--emulator-profile", help="The truth that the emulator plays; by default 'default'.")
@click.option("--emulator-seed", type=int, help="Seed of the emulator's noise; by default the design's.")
@click.option("--time-scale", type=float, help="Scale of the emulator's delays; by default 0.01.")
@click.option(
    "--expires",
    type=float,
    metavar="HOURS",
    callback=_hours,
    help="Machines shut themselves down after that; by default 12.",
)
@click.option("--keep", is_flag=True, help="Leave machines and disks standing at the end.")
@click.option("--resume", metavar="RUN", help="Go on with a run that was cut short.")
def run(scenario: str | None, resume: str | None, keep: bool, **options: Any) -> None:
    """Run SCENARIO: provision, benchmark, analyse, tear down."""
    from diskbook.azure import expiry
    from diskbook.cloud import connect
    from diskbook.runs import pipeline
    from diskbook.show import run as show_run
    from diskbook.store import run as runs

    if (scenario is None) == (resume is None):
        raise UsageError("name a scenario, or a run to --resume; 'diskbook list' shows both")
    azure = {key: options[key] for key in ("subscription", "ssh_source") if options[key] is not None}
    folder = runs.open_run(resume) if resume else _begin(str(scenario), options, azure)
    connect.go_on(folder, azure)
    if options["expires"] is not None:
        folder.update_manifest(expires_h=options["expires"])
    click.echo(f"run {folder.name} ({folder.manifest['provenance']}), folder {folder.folder}")
    if options["max_cost_usd"] is not None:
        folder.update_manifest(max_cost_usd=options["max_cost_usd"])
    click.echo(show_run.target_text(folder.manifest))
    if folder.manifest["provenance"] == "imported":
        raise UsageError(f"run {folder.name} was imported: there is nothing to go on with")
    outcome = pipeline.execute(folder, keep=keep)
    click.echo(f"\n{outcome.headline}\n\nreport: {outcome.report}")
    if standing := expiry.standing(folder.manifest):
        click.echo(f"run {folder.name} {standing}; 'diskbook teardown {folder.name}' deletes its machines")


def _begin(scenario: str, options: dict[str, Any], azure: dict[str, str]) -> Any:
    from diskbook.runs import stages
    from diskbook.store import run as runs

    overrides = dict(_setting(text) for text in options["settings"])
    name = options["name"] or runs.new_name(scenario.rsplit("/", 1)[-1].removesuffix(".toml"))
    if runs.folder_of(name).exists():
        raise UsageError(f"run {name} exists already; go on with --resume {name}, or choose another name")
    asked = {
        "name": options["emulator_name"],
        "profile": options["emulator_profile"],
        "seed": options["emulator_seed"],
        "time_scale": options["time_scale"],
    }
    emulator = {key: value for key, value in asked.items() if value is not None}
    return stages.begin(name, scenario, options["cloud"], options["preset"], overrides, emulator, azure)


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        given = redact.hide(text)
        raise UsageError(f"--set {given}: write KEY=VALUE, for example --set design.replicates=2")
    redact.refuse({key: value}, "--set ")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


@cli.command()
@click.argument("scenario")
@click.option("--preset", default="quick", show_default=True, help="quick, standard or full.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override, as of run.")
@click.option("--half-width", metavar="PERCENT", help="Wanted half-width of the interval, e.g. 1.5%.")
@click.option("--effect", metavar="PERCENT", help="Difference to be found, e.g. 2%.")
@click.option("--power", metavar="PERCENT", help="Probability of finding it; by default 80%.")
@click.option("--pilot", metavar="RUN", help="Take the spread from this run.")
@click.option("--sd-disk", metavar="PERCENT", help="Assumed s.d. between disk pairs; by default 1%.")
@click.option("--sd-run", metavar="PERCENT", help="Assumed s.d. of one tool run; by default 2%.")
@click.option("--history", metavar="RUN", multiple=True, help="Earlier runs of the same cells.")
@click.option("--cloud", default="emulator", show_default=True, help="azure also asks the subscription.")
@click.option("--subscription", metavar="ID", help="Azure: ask this subscription, not the environment's.")
@click.option("--live-prices", is_flag=True, help="Ask Azure's price list, which needs no account.")
@_max_cost
def plan(scenario: str, preset: str, settings: tuple[str, ...], **options: Any) -> None:
    """Show the design of SCENARIO, its time, limits, price and quota. Nothing is made.

    Also how many replicates and blocks it needs for a wanted precision or power.
    """
    from diskbook import load
    from diskbook.plan import cost as plan_cost, text as plan_text

    wanted = plan_text.wanted_of(options["half_width"], options["power"], options["effect"])
    sources = plan_text.sources_of(
        options["pilot"], options["history"], options["sd_disk"], options["sd_run"]
    )
    chosen = load.load(scenario, preset, dict(_setting(text) for text in settings))
    words = ["diskbook", "run", scenario, "--preset", preset]
    words += [word for text in settings for word in ("--set", text)]
    creation = plan_cost.sections(
        chosen,
        options["cloud"],
        subscription=options["subscription"],
        live=options["live_prices"],
        limit=options["max_cost_usd"],
    )
    click.echo(plan_text.plan_text(chosen, wanted, sources, shlex.join(words), creation))


@cli.command(name="list")
def list_() -> None:
    """List scenarios, emulator profiles and runs."""
    from diskbook import load
    from diskbook.runs import overview

    click.echo("scenarios: " + ", ".join(load.names()))
    click.echo("emulator profiles: " + ", ".join(sorted(path.stem for path in paths.PROFILES.glob("*.toml"))))
    found = overview.runs_table()
    click.echo("runs:" if len(found) else "runs: none")
    for name, row in found.iterrows():
        standing = f"  {row.standing}" if row.standing else ""
        click.echo(f"  {name}  {row.provenance}  {row.state}{standing}")


@cli.command(name="import")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--name", help="Name of the run; by default imported, time and four digits.")
@click.option("--arms-by", default="auto", show_default=True, help="folder, file, target or auto.")
@click.option("--base", metavar="ARM", help="Arm that the others are compared to; by default the first.")
@click.option("--same-machine", is_flag=True, help="All arms were measured on one machine: it cancels then.")
@click.option("--disk-sku", help="What was measured, e.g. Premium_LRS; with --size-gib its limits are known.")
@click.option("--size-gib", type=int, help="Size of the disk.")
@click.option("--vm-size", help="The machine, e.g. Standard_D4as_v4: its limits are known then.")
@click.option("--report", is_flag=True, help="Run the analysis notebook, too, and make report.html.")
def import_(paths: tuple[str, ...], name: str | None, report: bool, **options: Any) -> None:
    """Make a run of results of fio and DiskSpd, also of bench_fio, VMFleet and PerfKitBenchmarker."""
    from diskbook.importing import text as import_text

    run, words = import_text.run(paths, name, options)
    click.echo(words)
    if report:
        click.echo(f"report: {import_text.report(run)}")


@cli.command()
@click.argument("name", metavar="RUN")
def tables(name: str) -> None:
    """Rebuild the tables of RUN from its raw results."""
    from diskbook.store import run as runs, tables as store_tables

    folder = runs.open_run(name)
    built = store_tables.build(folder)
    store_tables.write(built, folder.folder)
    click.echo(
        f"{len(built.trials)} rows of trials, {len(built.bins)} of bins, {len(built.series)} of series"
    )


@cli.command()
@click.argument("name", metavar="RUN")
@click.option("--arm", metavar="NAME", help="Only this arm.")
@click.option("--workload", metavar="NAME", help="Only this workload.")
def why(name: str, arm: str | None, workload: str | None) -> None:
    """Say for every cell of RUN whether it was throttled, by which limit, and what would help."""
    from diskbook.analysis import diagnosis

    click.echo(diagnosis.of_run(name, arm, workload))


@cli.command(name="zone-affinity")
@click.option("--device", required=True, help="Block device or file that the workload uses, where it runs.")
@click.option("--zone", default="", help="Zone of the machine that reads.")
@click.option("--learn", metavar="FILE", help="Keep in FILE what reads from --zone take; no verdict.")
@click.option("--baseline", metavar="FILE|RUN", help="FILE of --learn, or a run that read such a disk.")
@click.option("--disk", metavar="NAME", help="Name of the disk in that run, if it has several.")
@click.option("--near-ms", type=float, help="In place of a baseline: read latency from the nearest zone.")
@click.option("--far-ms", type=float, help="And from the nearest of the others.")
@click.option(
    "--via",
    default="",
    metavar="COMMAND",
    help="What runs fio, e.g. 'sudo', or 'ssh node2 sudo': that machine needs fio only.",
)
@click.option(
    "--seconds", type=click.FloatRange(0.2, 600), default=2.0, show_default=True, help="Of each of 5 reads."
)
@click.option(
    "--size-gib", type=float, default=1.0, show_default=True, help="Part of the device that is read."
)
@click.option("--state", type=click.Path(dir_okay=False), help="File that remembers the last clear verdict.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object in place of a sentence.")
def zone_affinity(
    zone: str, learn: str | None, state: str | None, as_json: bool, baseline: str | None, disk: str | None,
    near_ms: float | None, far_ms: float | None, **reads: Any,
) -> None:  # fmt: skip
    """Say whether a workload sits in the zone that its zone-redundant disk answers from. Only reads.

    First, at a calm time, learn the disk from a machine in each zone (where it is not shared, one after
    another, as it moves):

    \b
    for n in 1 2 3; do
      diskbook zone-affinity --via "ssh node$n sudo" --device /dev/sdc --zone $n --learn zones.json
    done

    Then have cron or a timer look from where the workload runs, with its state on one machine, or on the
    volume that moves with the workload; a move is told once:

    \b
    diskbook zone-affinity --via "ssh $owner sudo" --device /dev/sdc \\
      --baseline zones.json --state state.json

    It reads 4 KiB at a time, one outstanding, at most 100 a second, beside the workload. A disk that is on
    its cap answers late from everywhere: far beyond what the zones account for, that is "not clear", short
    of it, it passes for a remote zone; so act on the second look in a row.

    Ends with 0 in the nearest zone, 10 in a remote one, 11 where that is not clear (it is not remembered);
    1 when nothing could be measured or written, 2 when the command was wrong. With --learn: 0 when the zone
    was learned. As a check of Nagios, with 1 for a warning and 3 for unknown:

    \b
    diskbook zone-affinity ... || exit $(($? == 10 ? 1 : 3))
    """
    from diskbook.zone_affinity import (
        baseline as zone_affinity_baseline,
        probe as zone_affinity_probe,
        verdict,
    )

    probe, given = zone_affinity_probe.Probe(**reads), (baseline, disk, near_ms, far_ms)
    found: verdict.Finding | verdict.Lesson
    if learn is None:
        known = zone_affinity_baseline.given(*given)
        found = verdict.look(probe, known, zone, Path(state) if state else None)
    elif state or any(value is not None for value in given):
        raise UsageError("--learn makes a baseline; leave out --state and the baseline")
    else:
        found = verdict.learn(probe, zone, Path(learn))
    click.echo(found.as_json if as_json else found.line)
    sys.exit(found.exit_code)


@cli.command()
@click.argument("name", metavar="RUN")
def teardown(name: str) -> None:
    """Delete whatever RUN has left standing."""
    from diskbook.runs import stages
    from diskbook.store import run as runs, session

    folder = runs.open_run(name)
    with session.session(folder):
        stages.teardown(folder, click.echo)
    click.echo("nothing of this run is left standing")


@cli.command()
@click.option("--cloud", help="emulator or azure; by default both, Azure where a subscription is named.")
@click.option("--emulator", "emulator_name", metavar="NAME", help="Look at this emulator only.")
@click.option("--delete", is_flag=True, help="Delete what the list says goes. Nothing is asked.")
def sweep(cloud: str | None, emulator_name: str | None, delete: bool) -> None:
    """List, or delete, what runs have left: resource groups past their expiry or without a live run.

    A group is known by the tags of a run, never by its name. Before its expiry it goes only if the run was
    started from this folder of runs on this computer, without --keep, and has no process any more. Killed
    emulators, keys of killed runs and temporary folders go as well.

    Ends with 0 when nothing is left to go, with 3 when something is (listed, or not deleted), with 1 or 2
    when a cloud could not be looked at or the command was wrong.
    """
    from diskbook.runs import sweep as sweep_runs, sweep_text

    found = sweep_runs.look(cloud, emulator_name)
    click.echo(sweep_text.text_of(found))
    if not found.goes:
        return
    if not delete:
        click.echo(f"{sweep_text.going(found)} to go: 'diskbook sweep --delete' deletes")
        sys.exit(3)
    failed = sweep_runs.remove(found, click.echo)
    for text in failed:
        click.echo(f"left: {text}", err=True)
    if failed:
        sys.exit(3)
    click.echo(f"{sweep_text.going(found)} deleted, and read back")


@cli.command()
@click.argument("name", metavar="RUN")
def figures(name: str) -> None:
    """Export the figures of RUN to figures/<scenario>, replacing those that are there."""
    from diskbook.runs import samples
    from diskbook.store import run as runs

    folder = runs.open_run(name)
    for path in samples.export_figures(folder, paths.FIGURES / folder.manifest["scenario"]["name"]):
        click.echo(path)


@cli.command()
@click.argument("scenarios", nargs=-1)
def sample(scenarios: tuple[str, ...]) -> None:
    """Make the sample runs of SCENARIOS (default: all) and their figures again, on the emulator."""
    from diskbook.base.errors import unknown
    from diskbook.runs import samples

    for name in scenarios or tuple(samples.OVERRIDES):
        if name not in samples.OVERRIDES:
            raise unknown("sample", name, samples.OVERRIDES)
        outcome = samples.make(name)
        click.echo(f"\n{outcome.headline}\n\nreport: {outcome.report}")


@cli.group(cls=Suggesting)
def emulator() -> None:
    """Start, list and stop emulators by hand."""


@emulator.command()
@click.argument("name", default="default")
@click.option("--profile", default="default", show_default=True, help="The truth that the emulator plays.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of its noise.")
@click.option("--time-scale", type=float, default=0.01, show_default=True, help="Scale of Azure's delays.")
@click.option("--faults", type=click.Path(exists=True, dir_okay=False), help="JSON list of faults to inject.")
def start(name: str, profile: str, seed: int, time_scale: float, faults: str | None) -> None:
    """Start an emulator called NAME; it runs until it is stopped."""
    from pathlib import Path

    from diskbook.emulator import lifecycle

    planted = json.loads(Path(faults).read_text("utf-8")) if faults else None
    found = lifecycle.start(name, profile=profile, seed=seed, time_scale=time_scale, faults=planted or ())
    click.echo(f"emulator {name} (emulated, profile {profile}) answers at {found.endpoint}")


@emulator.command()
def status() -> None:
    """List the emulators of this user."""
    from diskbook.emulator import lifecycle

    rows = lifecycle.status()
    for row in rows:
        click.echo(f"{row.name}  {row.state}  {row.profile}  {row.endpoint or ''}")
    if not rows:
        click.echo("no emulator runs")


@emulator.command()
@click.argument("name", default="default")
@click.option("--keep-state", is_flag=True, help="Keep its folder, so that a later start goes on with it.")
def stop(name: str, keep_state: bool) -> None:
    """Stop the emulator called NAME; nothing of it is left."""
    from diskbook.emulator import lifecycle

    lifecycle.stop(name, keep_state=keep_state)
    click.echo(f"emulator {name} is stopped")


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence, not in a traceback."""
    # Also for the notebooks' processes: the user's matplotlib settings must not change a figure.
    os.environ["MPLCONFIGDIR"] = str(paths.CACHE / "matplotlib")
    try:
        cli(prog_name="diskbook")
    except DiskbookError as error:
        click.echo(f"diskbook: {error}", err=True)
        sys.exit(error.exit_code)
    except Stopped as stop:
        click.echo(f"diskbook: {stop}", err=True)
        sys.exit(128 + stop.number)
