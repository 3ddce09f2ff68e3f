"""The answer of an analysed run, read from its files: what `list`, `run` and the report say of it."""

from __future__ import annotations

import pandas as pd

from diskbook.base.errors import DiskbookError
from diskbook.base.visible import visible
from diskbook.show import headlines
from diskbook.store.run import HEADLINE_FILE, Run

NUMBERS = ("ratio", "ci_low", "ci_high", "level", "p_adjusted", "diff_ms", "diff_low_ms", "diff_high_ms")


def of_run(run: Run) -> str:
    """Answer of an analysed run in one sentence, from its comparisons.csv, or what its analysis says itself.

    Raises
    ------
    DiskbookError
        When the run has not been analysed.
    """
    path = run.folder / "comparisons.csv"
    try:
        comparisons = pd.read_csv(path, keep_default_na=False, na_values=dict.fromkeys(NUMBERS, ""))
    except FileNotFoundError:
        raise DiskbookError(f"{path} is missing; run the analysis notebook on {run.name}") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise DiskbookError(f"{path} is damaged ({error}); run the analysis notebook again") from None
    own = run.folder / HEADLINE_FILE
    if own.exists() and not (comparisons["family"] == "headline").any():
        return visible(own.read_text("utf-8").strip())
    return headlines.headline(comparisons, run.scenario)
