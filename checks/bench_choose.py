"""How long an answer of `diskbook choose` takes, and whether it equals an independent loop.

Start-up is printed apart, since it is that of any command.
"""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from random import Random

import numpy as np

from checks import brute_choose
from diskbook.choose import ask, need as needs, search

NEEDS = 2_000
MOST_S = 1.0
"""Processor time of an answer over all sizes, disks and stripes of a region, after start-up."""


def answer_s(need: needs.Need) -> float:
    """Processor time of one answer, in seconds."""
    prices, started = ask.prices_of(need.region), time.process_time()
    search.find(need, prices, date(2026, 11, 27))
    return time.process_time() - started


def main() -> int:
    """Print times and disagreements; 1 where an answer is late or differs."""
    start_up = answer_s(needs.given("8000", "8K", None, "70%", "2TiB"))
    day = np.linspace(0, 2 * np.pi, 17_280)  # a day at 5 s
    rate = 2_000 + 1_500 * np.sin(day)
    cases = {
        "a rate": needs.given("8000", "8K", None, "70%", "2TiB"),
        "a rate with cache": needs.given("8000", "8K", None, "70%", "2TiB", survive="none", cache_hits="50%"),
        "a day at 5 s": needs.Need(rate, rate * 0.008, np.full(len(day), 5.0), 500),
    }
    times = {name: answer_s(need) for name, need in cases.items()}
    print(f"start-up: {start_up:.2f} s (tables and the first answer)")
    print(*(f"{name}: {seconds:.2f} s" for name, seconds in times.items()), sep="\n")
    number = int(sys.argv[1]) if len(sys.argv) > 1 else NEEDS
    first = Random(date.today().toordinal()).randrange(10**6)
    with ProcessPoolExecutor(2) as pool:
        wrong = [
            text
            for texts in pool.map(brute_choose.disagreements, range(first, first + number))
            for text in texts
        ]
    print(
        f"{number:,} needs from seed {first}; disagreements with the loop: {len(wrong)}", *wrong[:5], sep="\n"
    )
    return 1 if wrong or max(times.values()) > MOST_S else 0


if __name__ == "__main__":
    sys.exit(main())
