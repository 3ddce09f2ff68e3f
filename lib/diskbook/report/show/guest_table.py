"""The guests: what each arm's machine and block device are, and how busy they were, as a table."""

from __future__ import annotations

import math

from diskbook.design.vocabulary import Provenance
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import Html, escaped, folded, table
from diskbook.stats.gates.guests import GUEST_FACTS, CellGuest, guests_by_arm

_UNREAD = "What the machines and their block devices were was not read in this run."
_EMULATED = (
    "Emulated machines have kernel and processor of the computer that emulates them, and share them; their "
    "image is the one that was asked for, and nothing of it runs. fio reaches their disks by NBD: there is "
    "no block device, and so no queue, scheduler or write cache."
)


def guests(a: Analysed) -> Html:
    """Show by arm kernel, image, driver, queue and write cache, worst steal and busiest core of any trial."""
    of_arms = guests_by_arm(a.trials, a.tables.guest)
    if not of_arms:
        return Html(f"<p>{escaped(_UNREAD)}</p>")
    rows = [_row(a.labels[arm], of_arms[arm]) for arm in a.labels if arm in of_arms]
    emulated = Provenance.EMULATED in a.provenance
    note = f"<p>{escaped(_EMULATED)}</p>" if emulated else ""
    return folded(
        "Arm by arm", table(rows, f"The guests, by arm ({a.provenance})", optional=list(rows[0])) + note
    )


def _row(arm: str, guest: CellGuest) -> dict[str, str]:
    facts = {_head(name): "; ".join(guest.facts.get(name, ())) for name in GUEST_FACTS}
    worst = {"Worst steal": _percent(guest.steal_worst), "Busiest core": _percent(guest.core_worst)}
    return {"Arm": arm, **facts, **worst}


def _head(name: str) -> str:
    words = GUEST_FACTS[name]
    return words if words == "nr_requests" else words[:1].upper() + words[1:]


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1f} %"
