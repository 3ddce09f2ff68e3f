"""Before anything is made: `plan`, `doctor`, `limits`, and `choose` for the machine and disks of a load."""

import shlex
import sys
from typing import Any

import click

from diskbook.cli import complete
from diskbook.cli.groups import SectionedCommand
from diskbook.cli.options import (
    cloud,
    company,
    examples,
    expires,
    hosts,
    json_option,
    max_cost,
    overrides,
    preset,
    refuse_given,
    settings,
    show,
    show_json,
    ssh_source,
    subscription,
)
from diskbook.facts.errors import UsageError


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


@click.command(
    cls=SectionedCommand,
    sections={
        "A recorded load": ("source", "device", "interval_s"),
        "Answer": ("prices", "latency", "why", "current", "as_json"),
    },
    epilog=examples(
        "diskbook choose --iops 8000 --block-size 8K --read 70% --size 2TiB --survive zone",
        "diskbook choose --from iostat.txt --device sdc --size 500GiB --region norwayeast",
        "diskbook choose --iops 8000 --block-size 8K --size 1TiB --why E4ads_v5+P40:plus",
        "diskbook choose --iops 3000 --block-size 8K --size 1TiB --current E2as_v5+2xP30",
    ),
)
@click.option("--iops", metavar="N", help="I/Os per second that must last.")
@click.option("--block-size", metavar="SIZE", help="Bytes per I/O, e.g. 8K.")
@click.option("--mb-s", metavar="N", help="Throughput in 10^6 bytes/s, in place of one of both.")
@click.option("--read", metavar="PERCENT", help="Share of reads; by default 100%.")
@click.option("--size", metavar="SIZE", help="Room for data, e.g. 2TiB.")
@click.option(
    "--survive",
    type=click.Choice(["none", "machine", "zone"]),
    default="machine",
    show_default=True,
    help="What the data must outlive: nothing, the machine (LRS), the loss of a zone (ZRS).",
)
@click.option("--region", default="westeurope", show_default=True, help="Azure region.")
@click.option("--os", type=click.Choice(["linux", "windows"]), default="linux", show_default=True)
@click.option("--vm", default="", metavar="PATTERN", help="VM sizes to look at, e.g. 'E*s_v5'.")
@click.option("--disk", default="", metavar="PATTERN", help="Disk SKUs to look at, e.g. 'Premium_*'.")
@click.option("--vcpus", type=click.IntRange(1), default=1, help="Least number of vCPUs.")
@click.option("--memory-gib", type=click.FloatRange(0), default=0, help="Least memory.")
@click.option(
    "--cache-hits",
    default="0%",
    metavar="PERCENT",
    help="Share of reads that a host cache answers; by default 0%.",
)
@click.option("--p99-ms", type=click.FloatRange(0, min_open=True), help="Wished latency; it filters nothing.")
@click.option(
    "--from",
    "source",
    metavar="FILE|RUN:ARM:WORKLOAD|SCENARIO:WORKLOAD",
    help="Learn the load: a log of iostat, an Azure Monitor export, a cell of a run, a scenario's workload.",
)
@click.option("--device", metavar="NAME", help="The disk of the log that counts; by default all whole disks.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(0.1, 86400),
    metavar="SECONDS",
    help="Of a log without times.",
)
@click.option(
    "--prices",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Saved answer of Azure's price list.",
)
@click.option("--latency", metavar="RUN", help="Show latencies that this run measured.")
@click.option(
    "--why", metavar="CANDIDATE", help="Walk through each limit of a candidate, e.g. E4bds_v5+2xP30."
)
@click.option("--current", metavar="VM+DISKS", help="Your present machine and disks, e.g. E2as_v5+2xP30.")
@json_option
def choose(as_json: bool, **options: Any) -> None:
    """Choose a VM size and disks that carry a load, cheapest first.

    It looks at all documented VM sizes, disks and stripes of a region. Rates and list prices decide. A
    latency neither filters nor ranks, since hardly any is measured.
    """
    from diskbook.cli import documents
    from diskbook.facts import neighbours

    answer = neighbours.choice.ask(**options)
    if as_json:
        show_json(documents.Choose(**answer.record()))
    else:
        show(answer.text())
