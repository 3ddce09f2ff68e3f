"""Put the sample runs' executed notebooks and reports into the site, as they are in `data/runs`."""

import json
import shutil
from pathlib import Path

from sphinx.application import Sphinx

RUNS = Path(__file__).resolve().parents[2] / "data" / "runs"
HEAD = """# Sample runs

These are the executed analysis notebooks of the runs that come with the workbook. All are **emulated**: they
show how the method works and say nothing about Azure. Posts whose names begin with `real` are not: others
measured on Azure what they say. A report is the same notebook as one file that needs no
network. A post is a short text for an editor.

"""


def copy_notebooks(app: Sphinx) -> None:
    """Copy each sample's analysis notebook into `samples/`, and list them on one page."""
    folder = Path(app.srcdir) / "samples"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    names = []
    for run in sorted(RUNS.glob("sample-*")):
        for notebook in sorted((run / "notebooks").glob("3-analyse-*.ipynb")):
            (folder / f"{run.name}.ipynb").write_text(as_a_page(notebook), "utf-8")
            names.append(run.name)
    posts = [f"../posts/{path.stem}" for path in sorted((Path(app.srcdir) / "posts").glob("*.md"))]
    listed = "".join(
        f"- [{name}]({name}.ipynb), <a href='../reports/{name}.html'>report</a>\n" for name in names
    )
    listed += "".join(f"- [Post of {Path(post).name}]({post}.md)\n" for post in posts)
    tree = "\n".join(["```{toctree}", ":hidden:", "", *names, *posts, "```"])
    (folder / "index.md").write_text(f"{HEAD}{listed}\n{tree}\n", "utf-8")


def as_a_page(path: Path) -> str:
    """Return the notebook without its environment; the cell with banner and style shows its output."""
    notebook = json.loads(path.read_text("utf-8"))
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        if any(
            "<style>" in "".join(output.get("data", {}).get("text/html", ""))
            for output in cell.get("outputs", ())
        ):
            cell["metadata"]["tags"] = ["remove-input"]
        for output in cell.get("outputs", ()):
            if alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                cell["metadata"]["mystnb"] = {"image": {"alt": alt}}
    return json.dumps(notebook)


def copy_reports(app: Sphinx, error: Exception | None) -> None:
    """Copy the samples' reports beside the pages."""
    if error is None and app.builder.name == "html":
        folder = Path(app.outdir) / "reports"
        folder.mkdir(exist_ok=True)
        for report in sorted(RUNS.glob("sample-*/report.html")):
            shutil.copy(report, folder / f"{report.parent.name}.html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", copy_notebooks)
    app.connect("build-finished", copy_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
