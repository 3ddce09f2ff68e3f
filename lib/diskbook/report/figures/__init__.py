"""Figures of a run: drawn from tables, captioned from computed numbers, exported byte for byte the same.

Here are the kinds that every run may have. The others are imported from their modules.
"""

from diskbook.report.figures.export import (
    USUAL,
    Look,
    as_png,
    as_svg,
    data_csv,
    export,
    export_all,
    html,
    refuse_others,
)
from diskbook.report.figures.forest import forest
from diskbook.report.figures.load_curve import load_curve
from diskbook.report.figures.percentiles import tail
from diskbook.report.figures.strip import shares, strip
from diskbook.report.figures.style import ArmLook, Picture, RunSource, looks

__all__ = [
    "USUAL",
    "ArmLook",
    "Look",
    "Picture",
    "RunSource",
    "as_png",
    "as_svg",
    "data_csv",
    "export",
    "export_all",
    "forest",
    "html",
    "load_curve",
    "looks",
    "refuse_others",
    "shares",
    "strip",
    "tail",
]
