"""Figures of a run: drawn from tables, captioned from computed numbers, exported byte for byte the same."""

from diskbook.report.figures.campaign_map import campaign_map
from diskbook.report.figures.credit import credit
from diskbook.report.figures.depth_curves import depth_curves
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
from diskbook.report.figures.predicted import drives
from diskbook.report.figures.published import shares
from diskbook.report.figures.runs_forest import runs_forest
from diskbook.report.figures.strip import strip
from diskbook.report.figures.style import ArmLook, Picture, RunSource, looks

__all__ = [
    "USUAL",
    "ArmLook",
    "Look",
    "Picture",
    "RunSource",
    "as_png",
    "as_svg",
    "campaign_map",
    "credit",
    "data_csv",
    "depth_curves",
    "drives",
    "export",
    "export_all",
    "forest",
    "html",
    "load_curve",
    "looks",
    "refuse_others",
    "runs_forest",
    "shares",
    "strip",
    "tail",
]
