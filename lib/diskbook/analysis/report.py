"""One self-contained HTML page from the executed analysis notebook."""

from __future__ import annotations

from pathlib import Path

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from nbconvert import HTMLExporter
from traitlets.config import Config

from diskbook.analysis import answer, protocol as run_protocol
from diskbook.base.errors import DiskbookError
from diskbook.base.files import write_atomic
from diskbook.base.visible import visible
from diskbook.show import conformance, html as show_html
from diskbook.store.run import Run
from diskbook.tables.vocabulary import Provenance

HIDDEN_CELLS = {"remove-cell", "parameters", "injected-parameters"}
HIDDEN_INPUTS = {"hide-input", "remove-input"}
_HERE = Path(__file__).parent
STYLE = (_HERE / "report.css").read_text("utf-8")
_TEMPLATES = Environment(
    loader=FileSystemLoader(_HERE),
    autoescape=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
)


def build(run: Run, executed: Path | None = None, target: Path | None = None) -> Path:
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
    manifest, scenario = run.manifest, run.scenario
    source = executed or run.folder / "notebooks" / f"{scenario.analysis_notebook}.ipynb"
    body = _body(_read(source))
    page = _page(scenario.scenario.title, run.name, manifest["provenance"], body)
    path = target or run.folder / "report.html"
    write_atomic(path, page)
    return path


def headline(run: Run) -> str:
    """Answer of an analysed run in one sentence (`answer.of_run`)."""
    return answer.of_run(run)


def protocol(run: Run) -> str:
    """Say of an analysed run whether its headline comparisons are closed; empty where it names none."""
    items = [item for item in run_protocol.read(run) if item.family == "headline"]
    if not items:
        return ""
    words = conformance.summary(items, "headline comparison")
    return f"{words}; 'diskbook why --protocol {run.name}' lists what is missing, with remedies"


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
    """The page, by its template; cells, banner and style are what they are, the title is escaped."""
    banners = {Provenance.EMULATED: show_html.EMULATED, Provenance.INVENTORY: show_html.OWN_HARDWARE}
    return _TEMPLATES.get_template("report.html.jinja").render(
        title=visible(f"{title} ({provenance}, run {run})"),
        style=STYLE,
        banner=next((words for kind, words in banners.items() if kind in provenance), ""),
        body=body,
    )
