"""What a run folder records, as small tables for the notebooks."""

from typing import Any

import pandas as pd

from diskbook.design import attachments
from diskbook.design.vocabulary import Provenance
from diskbook.facts.units import GIB
from diskbook.report.show.html import Html, escaped
from diskbook.results.run import Run


def design_table(run: Run) -> pd.DataFrame:
    """Cells of the scenario, one row a workload, with the number of trials that are planned for it."""
    scenario = run.scenario
    planned = pd.Series(
        [trial.workload for block in attachments.plan_after_attach(scenario) for trial in block.trials]
    )
    rows = [
        {
            "workload": item.name,
            "block_size_bytes": item.block_size_bytes,
            "write_pct": item.write_pct,
            "outstanding": item.outstanding,
            "sync": item.sync or "",
            "ramp_s": item.ramp_s,
            "runtime_s": item.runtime_s,
            "blocks": item.blocks,
            "trials": int((planned == item.name).sum()),
        }
        for item in scenario.workload
    ]
    return pd.DataFrame(rows).set_index("workload")


def machines(run: Run) -> pd.DataFrame:
    """Machines with zones and the limits of their uncached and cached paths."""
    return _resources(run, "machines", ["size", "logical_zone", "physical_zone"])


def disks(run: Run) -> pd.DataFrame:
    """Disks with zones and limits."""
    return _resources(run, "disks", ["sku", "logical_zone", "physical_zone"])


def read_back(run: Run) -> pd.DataFrame:
    """Settings of each disk as Azure reports them, one row a disk."""
    rows = [
        {"replicate": row["replicate"], "disk": name, **disk["read_back"]}
        for row in run.manifest["replicates"]
        for name, disk in row["disks"].items()
    ]
    return _frame(rows, ["replicate", "disk"])


def volumes(run: Run) -> pd.DataFrame:
    """Volumes as their nodes read them back; `efficiency` is what of the pool's bytes holds data."""
    rows = [
        {
            "replicate": row["replicate"],
            "volume": name,
            "kind": item["kind"],
            "nodes": ", ".join(item["nodes"]),
            **{
                fact: ", ".join(str(part[fact]) for part in item["parts"])
                for fact in ("copies", "columns", "interleave_bytes")
            },
            "size_gib": item["size_bytes"] / GIB,
            "efficiency": item["size_bytes"] / item["footprint_bytes"],
            "path": item["path"],
        }
        for row in run.manifest["replicates"]
        for name, item in row.get("volumes", {}).items()
    ]
    return _frame(rows, ["replicate", "volume"])


def steps(run: Run) -> pd.DataFrame:
    """Steps of nodes, one row a step and node: how often, how long, what the last one that failed said."""
    rows = pd.DataFrame([event for event in run.ledger() if event["event"] == "step"])
    if rows.empty:
        return _frame([], ["replicate", "step", "node"])
    grouped = rows.groupby(["replicate", "step", "node"], sort=False)
    return pd.DataFrame(
        {
            "count": grouped.size(),
            "failed": grouped["ok"].apply(lambda ok: int((~ok).sum())),
            "seconds_median": grouped["seconds"].median(),
            "error": grouped["error"].last(),
        }
    )


def operations(run: Run) -> pd.DataFrame:
    """Control-plane operations: how often, and their times in seconds. Emulated times are the profile's."""
    rows = [event for event in run.ledger() if event["event"] == "operation"]
    if not rows:
        return pd.DataFrame(columns=["count", "real_s_median", "unscaled_s_median"])
    grouped = pd.DataFrame(rows).groupby("name", sort=False)
    return pd.DataFrame(
        {
            "count": grouped.size(),
            "real_s_median": grouped["real_s"].median(),
            "unscaled_s_median": grouped["unscaled_s"].apply(lambda s: s.astype(float).median()),
        }
    )


def findings(run: Run) -> pd.DataFrame:
    """What the scenario's checks showed."""
    columns = ["replicate", "name", "ok", "expected", "observed", "text"]
    rows = [event for event in run.ledger() if event["event"] == "finding"]
    return pd.DataFrame(rows, columns=columns).set_index("name")


def trials(run: Run) -> pd.DataFrame:
    """Trials as they were run, in order."""
    columns = ["replicate", "block", "position", "arm", "workload", "attempt", "status", "seen", "error"]
    rows = [event for event in run.ledger() if event["event"] == "trial"]
    return pd.DataFrame(rows, columns=["trial", *columns]).set_index("trial")


def groups(run: Run) -> pd.DataFrame:
    """Resource groups of the run, and when each was deleted."""
    return _frame(run.manifest["resource_groups"], ["name"])


def places(run: Run) -> pd.DataFrame:
    """What the run has made on hosts of the user's own, and when it was removed."""
    rows = run.manifest.get("places", [])
    shown = ("host", "path", "kind", "made_utc", "removed_utc")
    return _frame([{name: row[name] for name in shown} for row in rows], ["host", "path"])


def _resources(run: Run, kind: str, columns: list[str]) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for row in run.manifest["replicates"]:
        for name, item in row[kind].items():
            shown = {column: item[column] for column in columns}
            rows.append({"replicate": row["replicate"], "name": name, **shown, **item["limits"]})
    return _frame(rows, ["replicate", "name"])


def _frame(rows: list[dict[str, Any]], index: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows).set_index(index) if rows else pd.DataFrame(columns=index).set_index(index)


def target(manifest: dict[str, Any]) -> Html:
    """Show which subscription, tenant and region a run uses, or that it is emulated on this machine."""
    return Html(f"<p>This run uses {escaped(target_text(manifest))}.</p>")


def target_text(manifest: dict[str, Any]) -> str:
    """Say what a run uses: subscription, tenant and region, or its emulator. No cloud is asked."""
    region = manifest["scenario"].get("scenario", {}).get("region", "?")
    if manifest["cloud"] == "emulator":
        played = manifest["emulator"]
        return (
            f"emulated: region {region} of the workbook's own emulator {played['name']} (profile "
            f"{played['profile']}, seed {played['seed']}) on this machine; no subscription, tenant or sign-in"
        )
    if manifest["cloud"] == "inventory":
        hosts = [
            f"{host['name']} ({host['address'] or 'this machine'})"
            for host in manifest["inventory"]["hosts"].values()
        ]
        return f"hosts of your own, no Azure: {', '.join(hosts)}; it costs nothing here"
    if manifest["cloud"] != "azure":
        return f"no cloud: {manifest['provenance']}"
    used = manifest.get("azure") or {}
    emulated = (
        f"emulated by {used.get('endpoint')}: " if manifest["provenance"] == Provenance.EMULATED else ""
    )
    return (
        f"{emulated}subscription {used.get('subscription_name', '?')} ({used.get('subscription', '?')}, from "
        f"{used.get('subscription_from', '?')}), tenant {used.get('tenant', '?')}, region {region}; machines "
        f"let in SSH from {used.get('ssh_source', '?')}"
    )
