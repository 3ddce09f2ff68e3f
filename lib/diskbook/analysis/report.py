"""One self-contained HTML page from the executed analysis notebook."""

from __future__ import annotations

import html
from pathlib import Path

import nbformat
import pandas as pd
from nbconvert import HTMLExporter
from traitlets.config import Config

from diskbook.base.errors import DiskbookError
from diskbook.base.files import write_atomic
from diskbook.show import html as show_html, sentences
from diskbook.store.run import Run

HIDDEN_CELLS = {"remove-cell", "parameters", "injected-parameters"}
HIDDEN_INPUTS = {"hide-input", "remove-input"}

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; color: #222; background: #fff; font: 16px/1.55 system-ui, "Segoe UI", Roboto, "DejaVu Sans",
  sans-serif; overflow-wrap: break-word; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem 1rem 4rem; }
p, ul, ol, h1, h2, h3, figure { max-width: 46rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.25rem; margin-top: 2.2rem; }
a { color: #00568a; } code { font-size: .9em; background: #f3f3f3; padding: 0 .2em; }
.banner { position: sticky; top: 0; z-index: 2; background: #8a2f66; color: #fff; font-weight: 600;
  padding: .5rem 1rem; text-align: center; }
.answer { font-size: 1.3rem; line-height: 1.4; font-weight: 600; border-left: 4px solid #0072b2;
  padding-left: .8rem; }
.emulated { margin: 1rem 0; }
.table { overflow-x: auto; margin: 1rem 0; } .table:focus { outline: 2px solid #0072b2; }
table { border-collapse: collapse; font-size: .78rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; padding: .3rem; border-bottom: 1px solid #ddd; vertical-align: top;
  overflow-wrap: normal; }
td.short, td.number { white-space: nowrap; } td.long { min-width: 12rem; }
th { border-bottom: 2px solid #888; vertical-align: bottom; } td.number { text-align: right; }
ol.notes { font-size: .85rem; color: #444; padding-left: 1.4rem; }
figure { margin: 1.5rem 0; } figure img { width: 100%; max-width: 43rem; height: auto; }
figcaption { font-size: .85rem; color: #444; }
pre { white-space: pre-wrap; font-size: .85rem; background: #f7f7f7; padding: .6rem; overflow-x: auto; }
.anchor-link { display: none; }
@media print { .banner { position: static; } h2 { break-after: avoid; } figure { break-inside: avoid; } }
"""


def build(folder: Run, executed: Path | None = None, target: Path | None = None) -> Path:
    """Make the report of a run from its executed analysis notebook.

    Inputs are hidden, and so are cells tagged as set-up. The page needs no network and no script. On an
    emulated run a banner says so on every screen, whatever the notebook shows.

    Parameters
    ----------
    folder
        The run.
    executed
        The executed notebook; by default the run's own analysis notebook.
    target
        Where to write; by default report.html in the run folder.

    Raises
    ------
    DiskbookError
        When the notebook is missing, damaged, or was not executed.
    """
    manifest, scenario = folder.manifest, folder.scenario
    source = executed or folder.folder / "notebooks" / f"{scenario.analysis_notebook}.ipynb"
    body = _body(_read(source))
    page = _page(scenario.scenario.title, folder.name, manifest["provenance"], body)
    path = target or folder.folder / "report.html"
    write_atomic(path, page)
    return path


def headline(folder: Run) -> str:
    """Answer of an analysed run in one sentence, from its comparisons.csv.

    Raises
    ------
    DiskbookError
        When the run has not been analysed.
    """
    path = folder.folder / "comparisons.csv"
    try:
        comparisons = pd.read_csv(path, keep_default_na=False, na_values=dict.fromkeys(NUMBERS, ""))
    except FileNotFoundError:
        raise DiskbookError(f"{path} is missing; run the analysis notebook on {folder.name}") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise DiskbookError(f"{path} is damaged ({error}); run the analysis notebook again") from None
    return sentences.headline(comparisons, folder.scenario)


NUMBERS = ("ratio", "ci_low", "ci_high", "level", "p_adjusted", "diff_ms", "diff_low_ms", "diff_high_ms")


def _read(source: Path) -> nbformat.NotebookNode:
    try:
        notebook = nbformat.read(source, as_version=4)
    except FileNotFoundError:
        raise DiskbookError(f"{source} is missing; run the analysis first") from None
    except Exception as error:  # nbformat raises many kinds for a damaged file
        raise DiskbookError(f"{source} is not a notebook ({error}); run the analysis again") from None
    if not any(cell.get("outputs") for cell in notebook.cells if cell.cell_type == "code"):
        raise DiskbookError(f"{source} has no outputs: it was not executed; run the analysis first")
    return notebook


def _body(notebook: nbformat.NotebookNode) -> str:
    """Cells as HTML without inputs; scripts, styles and math loaders are left out."""
    settings = Config()
    settings.HTMLExporter.template_name = "basic"
    settings.HTMLExporter.mathjax_url = ""
    settings.HTMLExporter.require_js_url = ""
    settings.HTMLExporter.exclude_input = True
    settings.HTMLExporter.exclude_output_prompt = True
    settings.TagRemovePreprocessor.enabled = True
    settings.TagRemovePreprocessor.remove_cell_tags = HIDDEN_CELLS
    settings.TagRemovePreprocessor.remove_input_tags = HIDDEN_INPUTS
    exporter = HTMLExporter(config=settings)
    exporter.register_preprocessor("nbconvert.preprocessors.TagRemovePreprocessor", enabled=True)
    body, _ = exporter.from_notebook_node(notebook)
    return str(body)


def _page(title: str, run: str, provenance: str, body: str) -> str:
    emulated = "emulated" in provenance
    banner = f'<div class="banner" role="note">{show_html.EMULATED}</div>' if emulated else ""
    name = f"{title} ({provenance}, run {run})"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(name)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{banner}\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
