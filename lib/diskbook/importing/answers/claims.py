"""What publications of real measurements claim, re-examined by their own figures: a verdict per claim.

A claim that begins "A reading of the table" is not stated by the authors; their figures suggest it.
"""

from collections.abc import Iterator

import pandas as pd

from diskbook.importing import public
from diskbook.importing.answers import questions, seen
from diskbook.report.analysis.published_claims import ClaimVerdict

Claim = tuple[str, str, ClaimVerdict, str]
"""Data set, claim, verdict, and why, with the figure that was computed."""


def judged() -> pd.DataFrame:
    """Judge the claims of the public data sets.

    Returns `Data set`, `Claim`, `Verdict` (a `ClaimVerdict`), `Why`.
    """
    claims = [*_of_the_e10(), *_of_zones(), *_of_machines(), *_of_local_disks(), _of_pods()]
    return pd.DataFrame(claims, columns=["Data set", "Claim", "Verdict", "Why"])


def _of_the_e10() -> Iterator[Claim]:
    name = "cloud-storage-bench-2026"
    totals = questions.published_totals(public.table_of(name, "published"))
    whole, complete = questions.exponent(totals), questions.exponent(totals[totals["is_complete"]])
    yield (
        *(name, f"Throughput of the block disk falls with threads (exponent {whole[0]:.3f})"),
        ClaimVerdict.NOT_SUPPORTED,
        f"{int((~totals['is_complete']).sum())} of {whole[3]} cells lack their reads; the complete ones give "
        f"{complete[0]:+.3f} ({complete[1]:+.3f} to {complete[2]:+.3f})",
    )
    cells = questions.cells(public.table_of(name))
    reads = cells.to_dict("index")["read", 16]
    yield (
        *(name, f"A reading of the table: reads take {reads['lat_mean_ms']:.0f} ms with 16 threads"),
        ClaimVerdict.CAPPED,
        f"{reads['iops']:.0f} IOPS are the burst cap of an E10, so the latency is 16 / {reads['iops']:.0f} s",
    )
    published = float(totals["lat_mean_ms"].iloc[0])
    read, write = (cells.to_dict("index")[kind, 1]["lat_mean_ms"] for kind in ("read", "write"))
    yield (
        *(name, f"One thread has a mean latency of {published:.3f} ms"),
        ClaimVerdict.NOT_SUPPORTED,
        f"it averages reads and writes of several runs; a read takes {read:.3f} ms, a write {write:.3f} ms",
    )


def _of_zones() -> Iterator[Claim]:
    zones = questions.zones(public.table_of("db-zone-2025"))
    first, second = pd.DataFrame(zones.loc["PostgreSQL"].loc[1]).to_dict("records")
    change = {key: 100 * (value - 1) for key, value in first.items()}
    yield (
        *("db-zone-2025", f"Zone redundancy costs PostgreSQL's single client {change['published']:.1f} %"),
        ClaimVerdict.NOT_SUPPORTED,
        f"a replica in the same zone costs {change['replica']:.1f} %; the zone itself {change['zone']:.1f} % "
        f"that day, and {100 * (second['zone'] - 1):.1f} % two days later",
    )


def _of_machines() -> Iterator[Claim]:
    table = public.table_of("cockroach-2019")
    alone = table[table["threads"] == 1]["mib_per_s"]
    yield (
        *("cockroach-2019", "One thread writes 240.75 MiB/s (aggregate of the repository)"),
        ClaimVerdict.NOT_SUPPORTED,
        "two processes wrote one log on 11 September, so that was another number of threads; on the clean "
        f"days one thread writes {alone.min():.0f} to {alone.max():.0f} MiB/s",
    )
    sizes = table["vm_size"].unique()
    capped = [size for size in sizes if seen.caps(size)]
    (cap,) = seen.caps("Standard_D16s_v3")
    yield (
        *(
            "cockroach-2019",
            "A reading of the table: write throughput with 16 threads and more ranks the sizes",
        ),
        ClaimVerdict.CAPPED,
        f"{len(capped)} of {len(sizes)} sizes sit on their cap; the D16s_v3 on {cap.rate}",
    )


def _of_local_disks() -> Iterator[Claim]:
    states = public.table_of("scylla-iotune").set_index(["size", "state"])["read_iops"]
    of_size = states.loc["Standard_L8s_v3"]
    head = float(of_size["head"])
    before = float(of_size.drop("head").iloc[0])
    yield (
        *("scylla-iotune", f"The disks of an L8s_v3 read {before:,.0f} IOPS (before the correction)"),
        ClaimVerdict.NOT_SUPPORTED,
        f"its authors corrected it to {head:,.0f}, {head / before:.1f} times as many",
    )


def _of_pods() -> Claim:
    return (
        *("aks-fio-2022", "A reading of the table: container isolation (kata) changes the rate of a disk"),
        ClaimVerdict.NOT_MEASURED,
        "each cell was measured once, and depth and machine cannot be distinguished",
    )
