"""`diskbook plan`: design, time, limits and price of a scenario, before anything is made."""

import shlex
from typing import Any

import click

from diskbook.cli import complete
from diskbook.cli.options import (
    cloud,
    company,
    expires,
    hosts,
    max_cost,
    overrides,
    preset,
    refuse_given,
    settings,
    subscription,
)
from diskbook.cli.output import examples, json_option, show, show_json


@click.command(
    epilog=examples(
        "diskbook plan zone-disks",
        "diskbook plan zone-disks --preset standard --half-width 2%",
        "diskbook plan zone-disks --effect 5% --pilot sample-zone-disks",
        "diskbook plan zone-disks --half-width 3% --looks",
        "diskbook plan local-disk --cloud inventory --json",
    )
)
@click.argument("scenario", shell_complete=complete.scenarios)
@preset
@settings
@click.option("--half-width", metavar="PERCENT", help="Wanted half-width of the interval, e.g. 1.5%.")
@click.option("--effect", metavar="PERCENT", help="Difference to be found, e.g. 2%.")
@click.option("--between-runs", metavar="PERCENT", help="Ratio of ratios of two runs to find, e.g. 10%.")
@click.option("--looks", is_flag=True, help="Propose looks at which the run may stop.")
@click.option("--power", metavar="PERCENT", help="Probability of finding it; by default 80%.")
@click.option("--pilot", metavar="RUN", shell_complete=complete.runs, help="Take the spread from this run.")
@click.option("--sd-disk", metavar="PERCENT", help="Assumed s.d. between disk pairs; else as published.")
@click.option("--sd-run", metavar="PERCENT", help="Assumed s.d. of one tool run; else as published.")
@click.option(
    "--history",
    metavar="RUN",
    multiple=True,
    shell_complete=complete.runs,
    help="Earlier runs of the same cells.",
)
@cloud
@hosts
@subscription
@company
@click.option("--live-prices", is_flag=True, help="Ask Azure's price list, which needs no account.")
@max_cost
@expires
@json_option
def plan(scenario: str, preset: str, settings: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Show what a run of SCENARIO takes: time, price, limits, quota.

    Nothing is created. It also shows how many replicates and blocks a wanted precision or power needs. With
    --cloud azure it asks the subscription.
    """
    from diskbook.cli import document_of
    from diskbook.design import scenario_file
    from diskbook.measure.plan import cost as own_plan, terminal as plan_text

    target = plan_text.target_of(
        *(options[name] for name in ("half_width", "power", "effect", "between_runs", "looks"))
    )
    sources = plan_text.sources_of(
        options["pilot"], options["history"], options["sd_disk"], options["sd_run"]
    )
    if options["cloud"] == "inventory":
        names = ("tags", "resource_group")
        refuse_given(click.get_current_context(), names, "works with --cloud azure or emulator only")
    chosen = scenario_file.load(
        scenario, preset, overrides({"settings": settings, **options}), asks_azure=options["cloud"] == "azure"
    )
    words = ["diskbook", "run", scenario, "--preset", preset, *_asked_of_a_run(settings, options)]
    if options["cloud"] == "inventory":
        asked = {key: options[key] for key in ("hosts", "folder") if options[key] is not None}
        chosen, sections = own_plan.own_sections(chosen, asked)
        estimate = None
        words += ["--cloud", "inventory", *(f"--{key}={value}" for key, value in asked.items())]
    else:
        creation = _creation(chosen, options)
        sections, estimate = creation.sections, creation.estimate
    text = plan_text.plan_text(chosen, target, sources, shlex.join(words), sections)
    if as_json:
        show_json(document_of.plan(chosen, target, sources, estimate, text))
    else:
        show(text)


def _asked_of_a_run(settings: tuple[str, ...], options: dict[str, Any]) -> list[str]:
    """Return the options that a run takes as they were given here."""
    words = [word for text in settings for word in ("--set", text)]
    words += [word for text in options["tags"] for word in ("--tag", text)]
    words += ["--resource-group", options["resource_group"]] if options["resource_group"] else []
    return words + (["--expires", f"{options['expires']:g}"] if options["expires"] is not None else [])


def _creation(chosen: Any, options: dict[str, Any]) -> Any:
    """What would be created, of the options of a run."""
    from diskbook.measure.plan import cost as plan_cost

    return plan_cost.creation(
        chosen,
        options["cloud"],
        subscription=options["subscription"],
        live=options["live_prices"],
        limit=options["max_cost_usd"],
        expires_h=options["expires"],
    )


@click.command(epilog=examples("diskbook limits Standard_E4bds_v5", "diskbook limits Standard_D4s_v6 --json"))
@click.argument("size")
@json_option
def limits(size: str, as_json: bool) -> None:
    """Print the documented disk limits of a VM size.

    Each figure has its source and date, one row per attachment (SCSI, NVMe) and kind of disk. MB are 10^6
    bytes. All sizes are in data/limits, as CSV and Parquet (docs/reference/limits.md).
    """

    from diskbook.cli import documents
    from diskbook.facts import catalog, limits as reference, neighbours

    rows = reference.limits_of(catalog.vm_size(size))
    seen = neighbours.seen_caps.caps(rows[0].size)
    if as_json:
        show_json(documents.Limits.model_validate({"rows": rows, "seen": seen}))
    else:
        show("\n".join([reference.words(rows), *([""] if seen else []), *(item.words for item in seen)]))
