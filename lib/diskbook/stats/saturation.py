"""Saturation without a known limit: a queue in front of the disk, whatever table names what holds it. Pure.

A rate X needs X x L1 I/Os in flight (Little's law), where L1 is the latency of a single I/O of the same arm,
kind and block size. Where twice as many are in flight, half of the wait is a queue somewhere, and the latency
is no longer the disk's. What is in flight is X x latency: a held rate, and a load that thinks between its
I/Os, are judged by that and not by their depth. So the multiple is latency / L1.

Without a single I/O to judge by, the shallowest cell below a limit stands in for it: its latency is at least
L1, so that it can show a queue. That there is none it shows only as far as the rate grew with depth from
there on, since a rate is a concave function of depth, and nothing at none.

A limit just below what the disk would reach makes a shorter queue. Another cell of the arm, kind and block
size that reached a higher rate shows that no limit holds a cell (`shown`). Of the others, one whose rate
stands still as rates on a cap do looks like one on a limit: a deep cell, where its single I/Os move
more from trial to trial, and single I/Os.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import special

from diskbook.design.vocabulary import Label

SATURATED = 2.0
"""I/Os in flight as a multiple of those that the rate needs, from which on half of the wait is a queue."""
CLEAR = 1.75
"""The same multiple below which a latency is taken for the disk's; between the two, noise may decide."""
ALIKE = 0.01
"""Rates this close are equal, where each varies as little from trial to trial (a real cap: 0.3 %)."""
NO_MORE = 0.03
"""Rates this close are equal at twice the depth, which below a limit comes near to twice the rate."""
DOUBLED = 2.0
DEEPER = 1.25
"""Factor between two depths from which on equal rates say something."""
APART = 1.1
"""Factor between two latencies of single I/Os from which on equal rates at depth are no property of disks."""
FIRM = 3
"""Trials of a replicate from which on its own median counts."""
GROWN = 1.1
"""Multiple of a cell's rate that shows, where another load reached it, that no limit holds the cell."""
OF_A_CAP = 0.0013
"""Standard deviation of log rates on a cap from trial to trial (Azure VM Noise 2024: 0.0002 to 0.0013)."""
STILL_ALPHA = 0.01
"""Chance that a rate on such a cap moves more, and that a deep rate on none moves as little by chance."""
LIMIT_LIKE = "cannot be distinguished from a limit"

NO_SHALLOW_CELL = "no cell at depth 1 of this arm, kind and block size to judge by"
_GROUP = ["arm", "kind", "block_size_bytes"]
_ALIKE_LOAD = ["kind", "block_size_bytes", "outstanding"]


ONE_AT_A_TIME = 1.25
"""A rate up to so many times that of a single I/O needs no second one in flight."""
SERIALISED = "one I/O is worked on at a time: "
_GUEST, _CAP = (
    "the guest serialises them (by a lock of the file system, for one)",
    "a cap lies below the rate of a single I/O",
)


@dataclass(frozen=True)
class _Cells:
    """Cells of a run as arrays, one element a cell; `latency_ms`, `rate`, `n_trials` are [cell, replicate].

    `squares` and `df` are of log rates around their means in each replicate; `moves` and `flat` say
    that most trials move within themselves, or hardly do (`series.moving_trials`, `series.flat_trials`).
    """

    table: pd.DataFrame
    arm: np.ndarray
    outstanding: np.ndarray
    iops: np.ndarray
    in_flight: np.ndarray
    closed: np.ndarray
    below: np.ndarray
    steady: np.ndarray
    moves: np.ndarray
    flat: np.ndarray
    squares: np.ndarray
    df: np.ndarray
    latency_ms: np.ndarray
    rate: np.ndarray
    n_trials: np.ndarray


@dataclass(frozen=True)
class _Reference:
    """The least latency known of an arm, kind and block size, by replicate.

    - `low_ms`, `high_ms`: of the loads that have it: their least and their greatest.
    - `depth`: I/Os in flight at which it was measured; NaN where nothing was.
    - `bound`: how many times the latency of a single I/O it may be at most.
    """

    low_ms: np.ndarray
    high_ms: np.ndarray
    depth: float
    bound: float


@dataclass(frozen=True)
class _Finding:
    """What was found of the cell at a place: its label, why, and the I/Os that its rate needs in flight."""

    place: int
    label: str
    why: str
    needed: float = np.nan
    one_rate: bool = False


def is_open(cells: pd.DataFrame) -> pd.Series:
    """Whether cells have several I/Os in flight, and no other load shows that no limit holds them."""
    open_: pd.Series = cells["closed"] & (cells["outstanding"] > 1) & ~cells["shown"]
    return open_


def judge(totals: pd.DataFrame, code: np.ndarray, cells: pd.DataFrame) -> pd.DataFrame:
    """Say for every cell whether a queue makes its latency, from its rate and the other cells of the run.

    - `totals`: `tables.totals.trial_totals` of a run.
    - `code`: row of `cells` that each trial belongs to.
    - `cells`: medians of cells as `limits.label_cells` has them, with `kind` and `n_on_limit`.

    Returns by cell: `saturation` (`Label.SATURATED`, `Label.UNASSESSED` or ""), `queue` (why; "" for
    neither), `in_flight`, `needed`: the I/Os that the rate needs in flight (NaN where no shallow cell tells),
    `one_rate`: the depths that give one rate, in words ("" where none do), `shown`: whether another cell of
    the arm, kind and block size reached a higher rate in every replicate, and `closed`: whether neither a
    rate nor a pause held the load back.
    """
    labels, words, one_rate = ([""] * len(cells) for _ in range(3))
    needed = np.full(len(cells), np.nan)
    arrays = _arrays(totals, code, cells)
    shown = _shown(arrays)
    for finding in _findings(arrays, shown):
        place = finding.place
        if finding.one_rate:
            one_rate[place] = one_rate[place] or finding.why
        if labels[place] != Label.SATURATED:
            if finding.label or not labels[place]:
                labels[place], words[place] = finding.label, finding.why
            needed[place] = np.fmax(needed[place], finding.needed)
    columns = {"saturation": labels, "queue": words, "in_flight": arrays.in_flight, "needed": needed}
    columns |= {"one_rate": one_rate, "shown": shown, "closed": arrays.closed}
    return pd.DataFrame(columns, index=cells.index)


def _findings(cells: _Cells, shown: np.ndarray) -> Iterator[_Finding]:
    """Judge every cell by its own arm's single I/Os first, then by equal rates over depths and arms."""
    groups = _groups(cells.table, _GROUP)
    for group in groups:
        yield from _limit_like(cells, group, shown)
    if not (cells.outstanding > 1).any():
        return
    references: dict[int, _Reference] = {}
    for group in groups:
        reference = _reference(cells, group)
        references |= dict.fromkeys(group.tolist(), reference)
        yield from _judged(cells, group, reference)
    for group in groups:
        yield from _over_depths(cells, group)
    yield from _over_arms(cells, references)


def stands_still(squares: np.ndarray, df: np.ndarray) -> np.ndarray:
    """Return whether rates vary from trial to trial as little as rates on a cap do.

    - `squares`, `df`: squares of log rates around the means of their replicates, and degrees of freedom; of
      one shape.
    """
    still: np.ndarray = (df > 0) & (special.chdtrc(df, squares / OF_A_CAP**2) >= STILL_ALPHA)
    return still


def _groups(cells: pd.DataFrame, names: list[str]) -> list[np.ndarray]:
    """Places of the cells that are alike in these columns."""
    groups = cells.groupby(names, sort=False, dropna=False).indices.values()
    return [np.asarray(places) for places in groups]


def _arrays(totals: pd.DataFrame, code: np.ndarray, cells: pd.DataFrame) -> _Cells:
    """Take from trials and cells what is judged by; a latency that is missing follows from a full queue."""
    # Long: one array per field.
    outstanding, iops = (cells[name].to_numpy(float) for name in ("outstanding", "iops"))
    closed = cells["rate_offered"].isna().to_numpy() & (cells["n_paced"] == 0).to_numpy()
    rate, latency = (totals[name].to_numpy(float) for name in ("iops", "lat_mean_ms"))
    with np.errstate(all="ignore"):
        full = np.where(closed[code], 1000.0 * outstanding[code] / rate, np.nan)
        latency = np.where(np.isnan(latency), full, latency)
        in_flight = iops * cells["lat_mean_ms"].to_numpy(float) / 1000.0
        in_flight = np.where(np.isnan(in_flight) & closed, outstanding, in_flight)
    replicate = np.maximum(pd.factorize(totals["replicate"])[0], 0)
    shape = (len(cells), replicate.max(initial=0) + 1)
    place = code * shape[1] + replicate
    squares, df, rate_medians = _spread(rate, place, shape)
    rates = pd.Series(rate).groupby(code)
    steady = ((rates.max() - rates.min()).to_numpy() <= ALIKE * iops) & (cells["n_trials"].to_numpy() > 1)
    return _Cells(
        table=cells,
        arm=cells["arm"].to_numpy(object),
        outstanding=outstanding,
        iops=iops,
        in_flight=in_flight,
        closed=closed,
        below=(cells["n_on_limit"] == 0).to_numpy(),
        steady=steady,
        moves=_most(totals, "moves", code, len(cells)),
        flat=_most(totals, "flat", code, len(cells)),
        squares=squares,
        df=df,
        latency_ms=_by_place(pd.Series(latency).groupby(place).median(), shape),
        rate=rate_medians,
        n_trials=np.nan_to_num(_by_place(pd.Series(latency).groupby(place).count(), shape)),
    )


def _by_place(values: pd.Series, shape: tuple[int, ...]) -> np.ndarray:
    """Values by number of a cell and replicate as an array of this shape; NaN where there is none."""
    return values.reindex(range(int(np.prod(shape)))).to_numpy(float).reshape(shape)


def _spread(
    rate: np.ndarray, place: np.ndarray, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squares of log rates around their means of replicates, their degrees of freedom, and medians."""
    with np.errstate(all="ignore"):
        logs = pd.Series(np.where(rate > 0, np.log(rate), np.nan)).groupby(place)
    n, variance = _by_place(logs.count(), shape), _by_place(logs.var(ddof=0), shape)
    df = np.maximum(np.nan_to_num(n) - 1, 0).sum(axis=1)
    return np.nansum(n * variance, axis=1), df, np.exp(_by_place(logs.median(), shape))


def _most(totals: pd.DataFrame, column: str, code: np.ndarray, n_cells: int) -> np.ndarray:
    """Whether something holds for most trials of each cell; for none where the table has no such column."""
    if column not in totals:
        return np.zeros(n_cells, dtype=bool)
    most: np.ndarray = 2 * np.bincount(code, totals[column], n_cells) > np.bincount(code, minlength=n_cells)
    return most


def _shown(cells: _Cells) -> np.ndarray:
    """Whether another cell of its arm, kind and block size shows that no limit holds a cell, [cell].

    It does by a higher rate, in every replicate: a limit may be one machine's.
    """
    shown = np.zeros(len(cells.iops), dtype=bool)
    for group in _groups(cells.table, _GROUP):
        rates = cells.rate[group]
        most = np.fmax.reduce(rates, axis=0)
        shown[group] = ((most >= GROWN * rates) | np.isnan(rates)).all(axis=1)
    return shown


def _limit_like(cells: _Cells, group: np.ndarray, shown: np.ndarray) -> Iterator[_Finding]:
    """Cells whose rate stands still as on a cap, while nothing shows that no limit holds them.

    Deep ones count where an F-test tells their spread from that of their arm's single I/Os.
    """
    singles = group[cells.closed[group] & (cells.outstanding[group] == 1)]
    single = singles[np.argmax(cells.df[singles])] if len(singles) else -1
    judged = cells.closed & cells.below & ~shown & ~cells.moves
    for place in group[judged[group]].tolist():
        if not stands_still(cells.squares[place], cells.df[place]):
            continue
        spread = float(np.sqrt(cells.squares[place] / cells.df[place]))
        why = f"{LIMIT_LIKE}: its rate varies by {spread:.2%} from trial to trial"
        if cells.outstanding[place] == 1:
            yield _Finding(place, Label.UNASSESSED, f"{why}, and no other load reached a higher one")
        elif single >= 0 and cells.df[single] > 0:
            of_single = float(np.sqrt(cells.squares[single] / cells.df[single]))
            times = (of_single / max(spread, 1e-9)) ** 2
            if special.fdtrc(cells.df[single], cells.df[place], times) < STILL_ALPHA:
                yield _Finding(place, Label.UNASSESSED, f"{why}, that of its single I/Os by {of_single:.2%}")


def _reference(cells: _Cells, group: np.ndarray) -> _Reference:
    """Least latency known of a group: of its single I/Os, else of its shallowest cell below a limit."""
    singles = group[cells.outstanding[group] == 1]
    known = group[cells.below[group] & ~np.isnan(cells.latency_ms[group]).all(axis=1)]
    depth = bound = 1.0
    if not len(singles) and len(known):
        singles = known[[np.argmin(cells.in_flight[known])]]
        depth, bound = float(cells.in_flight[singles[0]]), _bound(cells, group, int(singles[0]))
    if not len(singles):
        nothing = np.full(cells.latency_ms.shape[1], np.nan)
        return _Reference(nothing, nothing, np.nan, np.nan)
    values = cells.latency_ms[singles]
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    return _Reference(low, high, depth, bound)


def _bound(cells: _Cells, group: np.ndarray, shallow: int) -> float:
    """How many times the latency of a single I/O that of a cell may be, by how the rate grows from there.

    A concave rate that is x at depth n, and g x at depth m, is at least (n - 1) (g - 1) x / (m - n) lower at
    depth 1, so that n I/Os need no more than n (1 - (n - 1) (g - 1) / (m - n)) times what they have.
    """
    depth = float(cells.in_flight[shallow])
    if not depth > 1:
        return 1.0
    deeper = group[(cells.in_flight[group] >= DEEPER * depth) & cells.closed[group]]
    growth = cells.iops[deeper] / cells.iops[shallow] - 1.0
    bounds = depth * (1.0 - (depth - 1.0) * growth / (cells.in_flight[deeper] - depth))
    return float(np.clip(np.nanmin(bounds, initial=depth), 1.0, depth))


def _judged(cells: _Cells, group: np.ndarray, reference: _Reference) -> Iterator[_Finding]:
    """Hold every cell of a group deeper than a single I/O against the group's least latency."""
    for place in group[cells.outstanding[group] != 1].tolist():
        with np.errstate(all="ignore"):
            least = cells.latency_ms[place] / reference.high_ms
            most = float(_median(cells.latency_ms[place] / reference.low_ms)) * reference.bound
        multiple = float(_median(least))
        needed = float(cells.in_flight[place]) / multiple
        if multiple >= SATURATED:
            yield _Finding(place, Label.SATURATED, _asks(cells, place, needed, reference), needed)
            continue
        in_part = bool((least[cells.n_trials[place] >= FIRM] >= SATURATED).any())
        if most < CLEAR and not in_part:
            yield _Finding(place, "", "", needed)
        else:
            why = _unassessed(multiple, reference, in_part)
            yield _Finding(place, Label.UNASSESSED, why, needed)


def _median(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else np.nan


def _asks(cells: _Cells, place: int, needed: float, reference: _Reference) -> str:
    """Say by how much a cell has more in flight than its rate needs."""
    at = f"the {_median(reference.high_ms):.2f} ms of depth {reference.depth:.0f}"
    has = f"{cells.in_flight[place]:.0f} give no more"
    if not cells.closed[place]:
        has = f"{cells.in_flight[place]:.1f} were"
    serial = f", so {_serialised(cells, place)}" if needed < ONE_AT_A_TIME and reference.depth == 1 else ""
    return f"this rate needs {needed:.1f} I/Os in flight at {at}; {has}{serial}"


def _serialised(cells: _Cells, place: int) -> str:
    """Name what lets one I/O through at a time: a cap is flat within trials, a lock is not; else both."""
    if cells.flat[place]:
        return f"{SERIALISED}{_CAP}, since the rate is flat within trials"
    if cells.moves[place]:
        return f"{SERIALISED}{_GUEST}, since the rate wanders within trials, and a cap's does not"
    return f"{SERIALISED}{_GUEST}, or {_CAP}"


def _unassessed(multiple: float, reference: _Reference, in_part: bool) -> str:
    """Say why nothing is known of a queue."""
    if np.isnan(multiple) or (multiple == 1.0 and reference.bound > 1):
        return NO_SHALLOW_CELL
    if reference.bound > 1:
        return f"{NO_SHALLOW_CELL}: the shallowest, at {reference.depth:.0f}, may wait in a queue itself"
    if in_part:
        return f"twice the latency of a single I/O in some replicates, {multiple:.1f} times over all"
    return f"{multiple:.1f} times the latency of a single I/O, which may be a queue's or the disk's own"


def _over_depths(cells: _Cells, group: np.ndarray) -> Iterator[_Finding]:
    """Cells of one arm whose rate is the same at another depth: what sets it is not the depth.

    A single I/O that gives the rate of several may be held by a limit as they are, or by a disk that works on
    one at a time.
    """
    closed = group[cells.closed[group] & (cells.iops[group] > 0)]
    for shallow, deep in combinations(closed[np.argsort(cells.outstanding[closed])].tolist(), 2):
        if _no_more(cells, shallow, deep):
            depths = " and ".join(f"{cells.outstanding[place]:.0f}" for place in (shallow, deep))
            rates = " and ".join(f"{cells.iops[place]:,.0f}" for place in (shallow, deep))
            why = f"{depths} outstanding give one rate ({rates} IOPS): likely a cap that nobody named"
            yield _Finding(deep, Label.SATURATED, why, one_rate=True)
            single = cells.outstanding[shallow] == 1
            label = Label.UNASSESSED if single else Label.SATURATED
            yield _Finding(shallow, label, why, one_rate=True)


def _no_more(cells: _Cells, shallow: int, deep: int) -> bool:
    """Whether more depth gave no more rate, at twice the depth in any replicate."""
    factor = cells.outstanding[deep] / cells.outstanding[shallow]
    change = abs(cells.iops[deep] / cells.iops[shallow] - 1.0)
    if factor >= DOUBLED:
        by_replicate = np.abs(cells.rate[deep] / cells.rate[shallow] - 1.0)
        return bool(change <= NO_MORE or (by_replicate <= NO_MORE).any())
    return bool(factor >= DEEPER and change <= ALIKE and cells.steady[[shallow, deep]].all())


def _over_arms(cells: _Cells, references: Mapping[int, _Reference]) -> Iterator[_Finding]:
    """Cells of several arms that run one load at one steady rate, though their single I/Os differ."""
    deep = cells.closed & cells.steady & (cells.outstanding > 1) & (cells.iops > 0)
    for group in _groups(cells.table, _ALIKE_LOAD):
        places = [place for place in group[deep[group]].tolist() if references[place].bound == 1.0]
        apart = _apart(cells, places, references)
        for position in np.flatnonzero((apart >= APART).any(axis=1)).tolist():
            other = int(apart[position].argmax())
            pair = [places[position], places[other]]
            arms, rates = " and ".join(map(str, cells.arm[pair])), cells.iops[pair]
            why = (
                f"{arms} run at one rate ({rates[0]:,.0f} and {rates[1]:,.0f} IOPS), though one takes "
                f"{apart[position, other]:.2f} times as long as the other for a single I/O"
            )
            yield _Finding(pair[0], Label.SATURATED, why)


def _apart(cells: _Cells, places: list[int], references: Mapping[int, _Reference]) -> np.ndarray:
    """How many times longer one arm's single I/O takes than the other's, [cell, cell]; 0 for unlike rates."""
    low = np.array([_median(references[place].low_ms) for place in places])
    high = np.array([_median(references[place].high_ms) for place in places])
    rates, arms = cells.iops[places], cells.arm[places]
    longer = low[:, None] / high[None, :]
    alike = np.abs(rates[:, None] / rates[None, :] - 1.0) <= ALIKE
    alike &= arms[:, None] != arms[None, :]
    return np.where(alike, np.nan_to_num(np.fmax(longer, longer.T)), 0.0)
