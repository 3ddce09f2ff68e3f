"""The platform's own metrics of a run: a table of its answers, and what they say of trials and cells. Pure.

Azure Monitor says for each minute which share of a limit was consumed. For a trial that is at least one
whole minute long this is evidence from the other side, to be compared with our own reading of the rates. It
never replaces it: a metric that disagrees is shown, and one that is missing changes nothing. Where it
reports a limit that our reading does not know of, there is no verdict (`stats.gates.platform`).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from diskbook.design import schema
from diskbook.design.totals import trial_totals
from diskbook.facts.metrics import BY_NAME, METRICS, grain_s
from diskbook.facts.units import US_PER_S
from diskbook.stats.limits import CONSUMED, binding_limit

BURSTS = 105.0
"""Percentage above which a burst is reported, not a limit; caps are seen about 2 % above nominal."""
_NAMES = {metric.limit: metric.name for metric in METRICS if not metric.credit}


def table(answers: Iterable[Mapping[str, Any]], provenance: str) -> pd.DataFrame:
    """Put answers of metrics:getBatch into one table; of a value that was fetched twice the later one stays.

    Raises KeyError, TypeError or ValueError when an answer is not of the shape that the service documents.
    """
    parts = [
        _frame(resource, metric, series, provenance)
        for answer in answers
        for resource in answer["values"]
        for metric in resource["value"]
        for series in metric["timeseries"]
    ]
    if not parts:
        return schema.empty(schema.METRICS)
    values = pd.concat(parts, ignore_index=True)
    values = values.drop_duplicates(list(schema.METRICS.key), keep="last", ignore_index=True)
    return schema.validate(schema.METRICS, values)


def _frame(
    resource: Mapping[str, Any], metric: Mapping[str, Any], series: Mapping[str, Any], provenance: str
) -> pd.DataFrame:
    """Values of one series; a minute without a value has its time alone."""
    points = [point for point in series["data"] if "average" in point or "maximum" in point]
    labels = {item["name"]["value"].lower(): item["value"] for item in series.get("metadatavalues", ())}
    values = {
        "machine_id": resource["resourceid"].lower(),
        "lun": labels.get("lun"),
        "metric": metric["name"]["value"],
        "minute_utc": pd.to_datetime([point["timeStamp"] for point in points], utc=True, format="ISO8601"),
        "grain_s": grain_s(resource["interval"]),
        "average": [point.get("average") for point in points],
        "maximum": [point.get("maximum") for point in points],
        "provenance": provenance,
    }
    return pd.DataFrame(values, columns=schema.METRICS.names).astype(
        {"average": float, "maximum": float, "lun": object}
    )


def of_trials(trials: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Find the windows of each metric that lie wholly within each trial, after its ramp.

    Returns one row a trial and metric with at least one such window: `trial, arm, workload, metric, limit`
    (its column in `trials`), `credit` (whether it is used credit, else consumption of the limit), `windows`,
    `average` and `maximum` in percent.
    """
    columns = ["trial", "arm", "workload", "metric", "limit", "credit", "windows", "average", "maximum"]
    measured = _measured(trials)
    start, end, places = measured["start"].to_numpy(), measured["end"].to_numpy(), _places(measured)
    parts = []
    for (machine, name, lun), series in _series(metrics):
        metric, here = BY_NAME.get(name.lower()), places.get((machine, lun))
        if metric is None or here is None:
            continue
        some, *within = _within(start[here], end[here], series)
        if some.any():
            parts.append(((metric.name, metric.limit, metric.credit), here[some], *within))
    if not parts:
        return pd.DataFrame(columns=columns)
    metric_of, rows, windows, average, maximum = zip(*parts, strict=True)
    times = [len(part) for part in rows]
    reported = measured[columns[:3]].iloc[np.concatenate(rows)].reset_index(drop=True)
    for column, values in zip(columns[3:6], zip(*metric_of, strict=True), strict=True):
        reported[column] = [value for value, n in zip(values, times, strict=True) for _ in range(n)]
    for column, shares in zip(columns[6:], (windows, average, maximum), strict=True):
        reported[column] = np.concatenate(shares)
    return reported


def _series(metrics: pd.DataFrame) -> Iterator[tuple[tuple[str, str, str], pd.DataFrame]]:
    """Each series by machine, metric and LUN ("" for the machine's own), in order of time."""
    ordered = metrics.assign(lun=metrics["lun"].fillna("")).sort_values("minute_utc", kind="stable")
    for key, series in ordered.groupby(["machine_id", "metric", "lun"], sort=False):
        machine, metric, lun = map(str, key)
        yield (machine, metric, lun), series


def _places(measured: pd.DataFrame) -> dict[tuple[str, str], np.ndarray]:
    """Positions of the trials of each machine, and of each of its disks, by machine and LUN ("": all)."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, (machine, lun) in enumerate(
        zip(measured["machine_id"], measured["lun"].fillna(""), strict=True)
    ):
        for part in {"", lun}:
            places.setdefault((machine.lower(), part), []).append(place)
    return {key: np.array(rows) for key, rows in places.items()}


def _us(times: pd.Series) -> np.ndarray:
    """Times as whole microseconds since the Unix epoch."""
    instants: np.ndarray = times.dt.tz_localize(None).to_numpy()
    return instants.astype("datetime64[us]").astype(np.int64)


def _measured(trials: pd.DataFrame) -> pd.DataFrame:
    """Finished trials, a row each, with the beginning and end of what was measured, in microseconds."""
    ok = trials[(trials["status"] != "failed") & ~_on_local_disk(trials)].drop_duplicates("trial")
    start = _us(ok["started_utc"]) + (US_PER_S * ok["ramp_s"].to_numpy(float)).astype(np.int64)
    seconds = np.nan_to_num(ok["runtime_s"].to_numpy(float))
    return ok.assign(start=start, end=start + (US_PER_S * seconds).astype(np.int64))


def _on_local_disk(trials: pd.DataFrame) -> pd.Series:
    """Trials on a machine's own disk, by their limits: that the platform counts these is not documented."""
    return trials["cap_vm_iops"].isna() & trials["cap_vm_cached_iops"].notna()


def _within(start: np.ndarray, end: np.ndarray, series: pd.DataFrame) -> tuple[np.ndarray, ...]:
    """Windows of one series wholly within each trial: whether any; how many, their mean and their maximum."""
    begin = _us(series["minute_utc"])
    first = np.searchsorted(begin, start, "left")
    last = np.searchsorted(begin + US_PER_S * series["grain_s"].to_numpy(), end, "right")
    some = last > first
    places = np.column_stack([first[some], last[some]]).ravel()
    if not len(places):
        return some, places, places, places
    # A last zero, since reduceat wants every place to be within.
    average, maximum = (np.append(series[name].to_numpy(float), 0.0) for name in ("average", "maximum"))
    windows = last[some] - first[some]
    means = np.add.reduceat(average, places)[::2] / windows
    return some, windows, means, np.maximum.reduceat(maximum, places)[::2]


def evidence(trials: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Hold for each trial what the platform reports against what its rate says.

    Returns one row a finished trial: `trial, arm, workload`, `limit` (the one its rate reaches, column in
    `trials`, or ""), `platform` (the one the platform reports as consumed, or ""), `consumed` (in percent, of
    the limit reached, else the highest of any), `agrees` ("yes", "no", or "" where nothing is known) and
    `words`.
    """
    totals = trial_totals(trials)
    by_rate = totals[["trial", "arm", "workload"]].assign(limit=binding_limit(totals)["limit"].to_numpy())
    reported = of_trials(trials, metrics)
    consumed = reported[~reported["credit"].astype(bool)]
    by_trial = {
        str(trial): dict(zip(part["limit"], part["maximum"], strict=True))
        for trial, part in consumed.groupby("trial")
    }
    grain_s = float(metrics["grain_s"].max()) if len(metrics) else math.nan
    rows = [_judged(row["limit"], by_trial.get(row["trial"]), grain_s) for row in by_rate.to_dict("records")]
    return by_rate.join(pd.DataFrame(rows, index=by_rate.index))


def _judged(limit: str, shares: Mapping[str, float] | None, grain_s: float) -> dict[str, Any]:
    """Hold one trial's limit against the percentages reported for it."""
    if not shares:
        words = (
            "no metrics" if math.isnan(grain_s) else f"metric grain {grain_s:g} s is longer than the trial"
        )
        return {"platform": "", "consumed": math.nan, "agrees": "", "words": words}
    # A limit that bursts is reported as more than 100 % of its base.
    own = limit.replace("_burst", "")
    reached = [
        name for name, share in shares.items() if share >= CONSUMED and (share <= BURSTS or name == own)
    ]
    top = own if own in shares else max(reached or shares, key=lambda name: shares[name])
    words = f"{_NAMES[top]} {shares[top]:.0f} %"
    platform = own if own in reached else next(iter(reached), "")
    agrees = "yes" if platform == own else "no"
    return {"platform": platform, "consumed": shares[top], "agrees": agrees, "words": words}


def consumed_by_cell(trials: pd.DataFrame, metrics: pd.DataFrame) -> dict[tuple[str, str, str], float]:
    """Median over trials of the highest consumed percentage, by arm, workload and column of the limit."""
    reported = of_trials(trials, metrics)
    consumed = reported[~reported["credit"].astype(bool)]
    medians = consumed.groupby(["arm", "workload", "limit"], as_index=False)["maximum"].median()
    return {
        (str(arm), str(load), str(limit)): float(value)
        for arm, load, limit, value in medians.itertuples(index=False)
    }
