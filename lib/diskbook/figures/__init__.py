"""Figures of a run: drawn from tables, captioned from computed numbers, exported byte for byte the same."""

from diskbook.figures.binding import binding
from diskbook.figures.campaign_map import campaign_map
from diskbook.figures.capacity import capacity
from diskbook.figures.copies import copies
from diskbook.figures.credit import credit
from diskbook.figures.depth_curves import depth_curves
from diskbook.figures.export import (
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
from diskbook.figures.failover import drill
from diskbook.figures.fleet import fleet
from diskbook.figures.forest import forest
from diskbook.figures.load_curve import load_curve
from diskbook.figures.loss_matrix import loss_matrix
from diskbook.figures.percentiles import tail
from diskbook.figures.predicted import drives
from diskbook.figures.published import shares
from diskbook.figures.rates import rates
from diskbook.figures.ratio_map import ratio_map
from diskbook.figures.runs_forest import runs_forest
from diskbook.figures.strip import strip
from diskbook.figures.style import ArmLook, Picture, looks

__all__ = [
    "USUAL",
    "ArmLook",
    "Look",
    "Picture",
    "as_png",
    "as_svg",
    "binding",
    "campaign_map",
    "capacity",
    "copies",
    "credit",
    "data_csv",
    "depth_curves",
    "drill",
    "drives",
    "export",
    "export_all",
    "fleet",
    "forest",
    "html",
    "load_curve",
    "looks",
    "loss_matrix",
    "rates",
    "ratio_map",
    "refuse_others",
    "runs_forest",
    "shares",
    "strip",
    "tail",
]
