"""Alternative texts of the matplotlib figures that a notebook shows."""

from __future__ import annotations

from typing import Any


def describe_figures(shell: Any) -> None:
    """Have an IPython shell give each figure an alternative text; matplotlib is not imported for it."""
    bundles = shell.display_formatter.mimebundle_formatter
    bundles.for_type_by_name("matplotlib.figure", "Figure", lambda figure: ({}, alternative(figure)))


def alternative(figure: Any) -> dict[str, dict[str, str]]:
    """Return the metadata of a figure as a PNG: its own label, else its titles and axes."""
    texts = [
        text
        for axes in figure.axes
        for text in (
            axes.get_title("left") or axes.get_title(),
            " by ".join(filter(None, [axes.get_ylabel(), axes.get_xlabel()])),
        )
    ]
    return {"image/png": {"alt": figure.get_label() or "; ".join(filter(None, texts)) or "a figure"}}
