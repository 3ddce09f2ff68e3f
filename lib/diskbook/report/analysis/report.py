"""One self-contained HTML page from the executed analysis notebook."""

from __future__ import annotations

import copy
import html
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError, visible
from diskbook.facts.files import write_atomic
from diskbook.report.analysis import protocol as run_protocol
from diskbook.report.show import conformance, headlines, html as show_html
from diskbook.results.run import Run

if TYPE_CHECKING:  # nbconvert and nbformat take a second to import, which a kernel need not spend
    import nbformat
    from nbconvert import HTMLExporter


import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from IPython.core.getipython import get_ipython
from IPython.core.history import HistoryOutput

from diskbook.facts import paths
from diskbook.report.analysis import companion_files
from diskbook.report.analysis.run import Analysis
from diskbook.report.show.html import Html, escaped

if TYPE_CHECKING:
    import nbformat


HIDDEN_CELLS = {"remove-cell", "parameters", "injected-parameters"}
HIDDEN_INPUTS = {"hide-input", "remove-input"}
REVIEWERS = "For reviewers"
"""Heading of the section that a report folds and paper leaves out."""
_HERE = Path(__file__).parent
STYLE = show_html.STYLE
BANNERS = {
    Provenance.EMULATED: (
        "EMULATED.",
        "These numbers come from the workbook's own emulator. They say nothing about Azure.",
        "Says nothing about Azure.",
    ),
    Provenance.INVENTORY: (
        "OWN HOSTS.",
        "Measured on hosts of the user's own (provenance: inventory). It says nothing about Azure.",
        "Says nothing about Azure.",
    ),
    Provenance.IMPORTED: (
        "MEASURED BY OTHERS.",
        "We did not watch it: settings in force and other load are not known.",
        "Settings in force are not known.",
    ),
    Provenance.AZURE: ("MEASURED BY US.", "On Azure.", "On Azure."),
}
"""First word, the rest on a screen, the rest on a telephone: the banner is one line on both."""
_HEADING = re.compile(r'<h2 id="([^"]*)">(.*?)</h2>', re.DOTALL)
_FIRST_HEADING = re.compile(r"<h2 .*?</h2>", re.DOTALL)
_ANCHOR = re.compile(r'<h(?P<level>[1-6]) id="(?P<id>[^>]*)">')
_CELL_ID = re.compile(r' id="cell-id=[^"]*"')
_NO_ANCHOR = re.compile(r"[^a-zA-Z0-9]+")
_MARK = re.compile(r'<a class="anchor-link" [^>]*>[^<]*</a>')
_LINK = re.compile(r'<a href="(?P<to>(?!#|[a-zA-Z][\w+.-]*:)[^"]*)"[^>]*>(?P<words>.*?)</a>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_TEMPLATES = Environment(
    loader=FileSystemLoader(_HERE),
    autoescape=True,
    keep_trailing_newline=True,
    trim_blocks=True,
    undefined=StrictUndefined,
)


def build(run: Run, executed: Path | None = None, target: Path | None = None) -> Path:
    """Make the report of a run from its executed analysis notebook.

    Inputs are hidden, and so are cells tagged as set-up. The page needs no network and no script, and
    its links lead somewhere. On an emulated run a banner says so, whatever the notebook shows.

    - `executed`: the executed notebook; by default the run's own analysis notebook.
    - `target`: where to write; by default report.html in the run folder.

    Raises DiskbookError when the notebook is missing, damaged, or was not executed.
    """
    source = executed or run.folder / "notebooks" / f"{run.scenario.analysis_notebook}.ipynb"
    return write(run, _read(source), target)


def write(run: Run, executed: nbformat.NotebookNode, target: Path | None = None) -> Path:
    """Write the report of a run from an executed notebook that is at hand; as `build`."""
    path = target or run.folder / "report.html"
    body = _live_links(_own_anchors(_body(executed)), path.parent)
    write_atomic(path, _page(run.scenario.scenario.title, run.name, run.manifest["provenance"], body))
    return path


def headline(run: Run) -> str:
    """Answer of an analysed run in one sentence (`results.of_run`)."""
    return headlines.read_answer(run)


def protocol(run: Run) -> str:
    """Say of an analysed run whether its headline comparisons are closed; empty where it names none."""
    items = [item for item in run_protocol.read(run) if item.family == "headline"]
    if not items:
        return ""
    words = conformance.summary(items, "headline comparison")
    return f"{words}; 'diskbook why --protocol {run.name}' lists what is missing, with remedies"


def _read(source: Path) -> nbformat.NotebookNode:
    import nbformat

    try:
        notebook = nbformat.read(source, as_version=4)
    except FileNotFoundError:
        raise DiskbookError(f"{source} is missing; run the analysis first") from None
    except Exception as error:  # nbformat raises many kinds for a damaged file
        raise DiskbookError(f"{source} is not a notebook ({error}); run the analysis again") from None
    if not any(cell.get("outputs") for cell in notebook.cells if cell.cell_type == "code"):
        raise DiskbookError(f"{source} has no outputs: it was not executed; run the analysis first")
    return notebook


def prepare() -> type[HTMLExporter]:
    """Import what makes the page, which takes a second: a command may while a notebook is executed."""
    from nbconvert import HTMLExporter

    return HTMLExporter


def _body(notebook: nbformat.NotebookNode) -> str:
    """Cells as HTML; what is for reviewers is folded. Scripts, styles and math loaders are left out."""
    exporter = _exporter()
    before, reviewers, after = (_exported(exporter, notebook, cells) for cells in _parts(notebook.cells))
    head = _FIRST_HEADING.search(reviewers)
    if head is None:
        return f"{before}{reviewers}{after}"
    rest = reviewers.replace(head[0], "", 1)
    return f'{before}<details class="reviewers"><summary>{head[0]}</summary>{rest}</details>{after}'


def _parts(cells: Sequence[nbformat.NotebookNode]) -> tuple[list[Any], list[Any], list[Any]]:
    """Cells before the section for reviewers, those of it, and those from the next section on."""
    heads = [place for place, cell in enumerate(cells) if _begins_section(cell)]
    first = next((place for place in heads if cells[place].source.startswith(f"## {REVIEWERS}")), len(cells))
    last = next((place for place in heads if place > first), len(cells))
    shown = [cell.cell_type != "code" or bool(cell.get("outputs")) for cell in cells]
    ranges = (0, first), (first, last), (last, len(cells))
    begin, middle, end = ([cells[n] for n in range(*reach) if shown[n]] for reach in ranges)
    return begin, middle, end


def _begins_section(cell: nbformat.NotebookNode) -> bool:
    return bool(cell.cell_type == "markdown" and cell.source.startswith("## "))


def _exported(exporter: HTMLExporter, notebook: nbformat.NotebookNode, cells: list[Any]) -> str:
    if not cells:
        return ""
    part = copy.copy(notebook)
    language = {"name": "python", "pygments_lexer": "python"}
    part.cells, part.metadata = cells, type(notebook)(language_info=type(notebook)(language))
    return _CELL_ID.sub("", str(exporter.from_notebook_node(part)[0]))


def _exporter() -> HTMLExporter:
    """Exporter of cells: the input of those that are not tagged is shown."""
    from traitlets.config import Config

    exporter_of = prepare()
    settings = Config()
    settings.HTMLExporter.template_name = "basic"
    settings.HTMLExporter.mathjax_url = ""
    settings.HTMLExporter.require_js_url = ""
    settings.HTMLExporter.exclude_input_prompt = True
    settings.HTMLExporter.exclude_output_prompt = True
    settings.TagRemovePreprocessor.enabled = True
    settings.TagRemovePreprocessor.remove_cell_tags = HIDDEN_CELLS
    settings.TagRemovePreprocessor.remove_input_tags = HIDDEN_INPUTS
    exporter = exporter_of(config=settings)
    exporter.register_preprocessor("nbconvert.preprocessors.TagRemovePreprocessor", enabled=True)
    return exporter


def _page(title: str, run: str, provenance: str, body: str) -> str:
    """The page, by its template; cells, banner and style are what they are, the title is escaped."""
    page = _TEMPLATES.get_template("report.html.jinja").render(
        title=visible(f"{title} ({provenance}, run {run})"),
        style=STYLE,
        banner=_banner(provenance),
        headings=_headings(body),
        body=body,
    )
    return show_html.unbroken(page)


def _banner(provenance: str) -> str:
    """Say where numbers come from that are not Azure's: one line, on a telephone a shorter one."""
    for kind, words in BANNERS.items():
        if kind in provenance:
            head, whole, short = (html.escape(part, quote=False) for part in words)
            return f'{head} <span class="wide">{whole}</span><span class="narrow">{short}</span>'
    return ""


def _headings(body: str) -> list[tuple[str, str]]:
    """Anchors and words of the headings below the title, for the contents."""
    return [(anchor, html.unescape(_TAG.sub("", words)).strip()) for anchor, words in _HEADING.findall(body)]


def _own_anchors(body: str) -> str:
    """Give headings anchors that every browser finds, numbered where they are worded alike."""
    seen: Counter[str] = Counter()

    def name(heading: re.Match[str]) -> str:
        anchor = _NO_ANCHOR.sub("-", html.unescape(heading["id"])).strip("-").lower() or "part"
        seen[anchor] += 1
        own = anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}"
        return f'<h{heading["level"]} id="{own}">'

    return _ANCHOR.sub(name, _MARK.sub("", body))


def _live_links(body: str, folder: Path) -> str:
    """Keep of links to files those that lead somewhere from the run's folder; of others the words."""

    def keep(link: re.Match[str]) -> str:
        path, _, _ = html.unescape(link["to"]).partition("#")
        return link[0] if not path or (folder / path).exists() else link["words"]

    return _LINK.sub(keep, body)


SESSION = "JPY_SESSION_NAME"
"""Environment variable in which Jupyter names the notebook of a kernel; VS Code has a variable for it."""
_VS_CODE = "__vsc_ipynb_file__"


def keep_outputs() -> None:
    """Have this kernel keep what its cells display, so that figures reach the report."""
    publisher: Any = getattr(get_ipython(), "display_pub", None)
    if hasattr(publisher, "register_hook"):
        publisher.unregister_hook(_keep_figure)
        publisher.register_hook(_keep_figure)


def _keep_figure(message: dict[str, Any]) -> dict[str, Any]:
    """Add a figure to the outputs of the cell that is being executed.

    IPython would itself (`store_display_history`), but under the number of the next cell.
    """
    shell: Any = get_ipython()
    if message["header"]["msg_type"] == "display_data":
        number = len(shell.history_manager.input_hist_raw) - 1
        output = HistoryOutput("display_data", message["content"]["data"])
        # Such as the alternative text of a figure.
        vars(output)["metadata"] = message["content"].get("metadata", {})
        shell.history_manager.outputs.setdefault(number, []).append(output)
    return message


def report_of_this_notebook(a: Analysis) -> Html:
    """Write report.html from the cells that this kernel has executed, and say where it is.

    Cells come in the order of the notebook's file. Executed cells that the file lacks, since it was not saved
    or has another name, follow the cell that was executed before them.
    """
    shell: Any = get_ipython()
    if os.environ.get(companion_files.REPORT_LATER) or shell is None:
        return Html("<p>The report is made from this notebook once it is finished.</p>")
    notebook = _notebook_of_kernel(a, shell.user_ns)
    history = shell.history_manager
    missing = _fill(notebook, history.input_hist_raw, history.outputs)
    path = write(a.run, notebook)
    lacks = (
        f", without {missing} cell{'s' * (missing != 1)} that this kernel has not executed as they are in "
        f"the notebook: save it and run all cells, or 'diskbook report {a.run.name}'"
    )
    return Html(
        f"<p>Report: <code>{escaped(_short_path(path))}</code>{escaped(lacks) if missing else ''}.</p>"
    )


def _notebook_of_kernel(a: Analysis, names: Mapping[str, Any]) -> nbformat.NotebookNode:
    """Read the notebook of this kernel, whatever its name, else the one that analyses the run."""
    import nbformat

    file = os.environ.get(companion_files.VARIABLE)
    usual = companion_files.notebook(a.scenario, Path(file) if file else None)
    for path in (names.get(_VS_CODE), os.environ.get(SESSION)):
        if path and Path(path).suffix == ".ipynb" and Path(path).is_file():
            usual = Path(path)
            break
    return nbformat.read(usual, as_version=4)


def _fill(
    notebook: nbformat.NotebookNode, sources: Sequence[str], outputs: Mapping[int, Sequence[Any]]
) -> int:
    """Give each cell what it showed when it was last executed, and add executed cells that are not there.

    Returns how many shown cells were never executed.
    """
    last = {source.strip(): number for number, source in enumerate(sources)}
    missing, cells = 0, []
    for cell in notebook.cells:
        number = last.pop(cell.source.strip(), None) if cell.cell_type == "code" else None
        cells.append((number, cell))
        if number is not None:
            cell.outputs = [_output(part) for part in outputs.get(number, ())]
        elif cell.cell_type == "code" and not HIDDEN_CELLS & set(cell.metadata.get("tags", [])):
            missing += 1
    begun = min((number for number, _ in cells if number is not None), default=0)
    for source, number in last.items():
        shown = [_output(part) for part in outputs.get(number, ())]
        if number > begun and shown:
            _insert_cell(cells, number, source, shown)
    notebook.cells = [cell for _, cell in cells]
    return missing


def _insert_cell(cells: list[tuple[int | None, Any]], number: int, source: str, outputs: list[Any]) -> None:
    """Put a cell behind the one that was executed before it."""
    import nbformat

    before = max((other for other, _ in cells if other is not None and other < number), default=None)
    place = next((place for place, (other, _) in enumerate(cells) if other == before), len(cells) - 1)
    cells.insert(place + 1, (number, nbformat.v4.new_code_cell(source, outputs=outputs)))


def _output(part: Any) -> nbformat.NotebookNode:
    """One output of a kernel's history as a notebook has it."""
    import nbformat

    if part.output_type in ("out_stream", "err_stream"):
        name = "stdout" if part.output_type == "out_stream" else "stderr"
        return nbformat.v4.new_output("stream", name=name, text="".join(part.bundle["stream"]))
    metadata = vars(part).get("metadata", {})
    return nbformat.v4.new_output(part.output_type, data=dict(part.bundle), metadata=metadata)


def _short_path(path: Path) -> str:
    """A path below the workbook's folder, where it lies there."""
    return os.path.relpath(path, paths.ROOT) if path.resolve().is_relative_to(paths.ROOT) else str(path)
