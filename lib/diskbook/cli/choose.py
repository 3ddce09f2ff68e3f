"""`diskbook choose`: from a workload to the machine and disks that carry it."""

from typing import Any

import click

from diskbook.cli.groups import SectionedCommand
from diskbook.cli.output import examples, json_option, show, show_json


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
    from diskbook.choose import ask
    from diskbook.cli import documents

    answer = ask.ask(**options)
    if as_json:
        show_json(documents.Choose(**answer.record()))
    else:
        show(answer.text())
