"""A run as an analyst opens it: its tables, comparisons of any two arms, figures and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from diskbook.api import comparison, explore
from diskbook.api.comparison import ComparisonResult
from diskbook.facts.errors import DiskbookError, UsageError, unknown
from diskbook.facts.files import write_atomic
from diskbook.measure.runs import overview
from diskbook.report import figures
from diskbook.report.analysis import report, run as run_analysis, why_text, write
from diskbook.report.analysis.run import Analysis
from diskbook.report.figures import Picture
from diskbook.report.show import headlines, locations, parameters
from diskbook.results import plan as plans
from diskbook.results.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MIME = "application/vnd.diskbook.answer+json"


class Answer(dict[str, Any]):
    """A run as `diskbook list --json` has it. Made by `RunResults.report` and `read_executed`."""

    html = ""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        text = f"{self['run']}: {self['answer']}"
        return {MIME: dict(self), "text/plain": text, "text/html": self.html or text}


def of_run(run: Run, html: str) -> Answer:
    """Make the answer of a run whose analysis was written; `html` is shown to readers."""
    answer = Answer(asdict(overview.listed(run)))
    answer.html = html
    return answer


def read_executed(path: str | Path) -> Answer:
    """Read the answer from an analysis notebook that papermill, `diskbook run` or JupyterLab executed.

    Examples
    --------
    >>> read_executed("out.ipynb")["answer"]  # doctest: +SKIP
    'On the emulator, one 4K write from zone 1 takes 3.19 ms on ZRS and 1.30 ms on LRS: +146 % (...)'

    Raises
    ------
    DiskbookError
        When there is no such notebook, or its last cell was not executed.
    """
    import nbformat

    try:
        cells = nbformat.read(path, as_version=4).cells
    except FileNotFoundError:
        raise DiskbookError(f"there is no notebook {path}; execute one of notebooks/3-analyse-*") from None
    except Exception as error:  # nbformat raises many kinds for a damaged file
        raise DiskbookError(f"{path} is not a notebook ({error})") from None
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    answers = [output.data[MIME] for output in outputs if MIME in output.get("data", {})]
    if not answers:
        raise DiskbookError(f"{path} holds no answer; execute an analysis notebook to its last cell")
    return Answer(answers[-1])


class RunResults:
    """What a run measured. Made by `open_run`.

    All tables are data frames with units in their column names (docs/reference/run-folder.md). A change of
    a table changes nothing else.
    """

    def __init__(self, analysis: run_analysis.Analysis, left_out: str = "") -> None:
        self._a, self._left_out = analysis, left_out

    @property
    def analysis(self) -> run_analysis.Analysis:
        """What is behind it, for the functions of `diskbook.report.show`."""
        return self._a

    @property
    def name(self) -> str:
        """Name of the run."""
        return self._a.run.name

    @property
    def folder(self) -> Path:
        """Folder of the run."""
        return self._a.run.folder

    @property
    def provenance(self) -> str:
        """Where the numbers come from: "azure", "emulated", "inventory" or "imported"."""
        return self._a.provenance

    @property
    def question(self) -> str:
        """What the run was made to answer."""
        return self._a.scenario.scenario.question

    @property
    def answer(self) -> str:
        """What it answers, from the comparisons that were named before it."""
        return f"exploratory, {self._left_out}: {self._a.headline}" if self._left_out else self._a.headline

    @property
    def headline(self) -> ComparisonResult | None:
        """The comparison that answers the question: the first decided headline; None where none was named."""
        return explore.lead(self._a, self._left_out)

    @property
    def caption(self) -> str:
        """Run, date, region and origin in one line, to stand below a figure or a table."""
        a, early = self._a, plans.early_stop(self._a.run).partition(":")[0]
        facts = [a.run.name, locations.dates(a), a.scenario.region, locations.ran_on(a)]
        stopped = f"stopped at the {early}" if early else ""
        return ", ".join(
            filter(None, [*facts, stopped, comparison.source_words(a.provenance), self._left_out])
        )

    @property
    def trials(self) -> pd.DataFrame:
        """One row a trial and direction."""
        return self._a.trials.copy()

    @property
    def cells(self) -> pd.DataFrame:
        """One row an arm and workload: medians, and the limit that holds it, if any."""
        return self._a.cells.copy()

    @property
    def comparisons(self) -> pd.DataFrame:
        """One row a comparison that the scenario named, and scope: ratio, interval, verdict.

        After `without` all are exploratory.
        """
        table = self._a.comparisons.copy()
        return table.assign(family="exploratory") if self._left_out else table

    @property
    def gates(self) -> pd.DataFrame:
        """One row a comparison and check: whether it passed, why, and what to do."""
        return self._a.gates.copy()

    @property
    def percentiles(self) -> pd.DataFrame:
        """Percentiles of latency, where enough I/Os stand behind them."""
        return self._a.percentiles.copy()

    @cached_property
    def figures(self) -> Mapping[str, object]:
        """Figures of the run by name; each shows itself."""
        return RunFigures(self._a, self._left_out)

    def compare(
        self,
        arm: str,
        base_arm: str,
        *,
        workload: str,
        metric: str = "lat_mean_ms",
        direction: str | None = None,
    ) -> ComparisonResult:
        """Compare two arms under one workload, after all gates.

        Parameters
        ----------
        arm, base_arm
            Names of arms; the change is that of `arm` over `base_arm`.
        workload, metric
            Name of a workload, and a column of `trials`.
        direction
            "read", "write" or "commit", where the workload has several.

        Returns
        -------
        ComparisonResult
            A comparison that the scenario did not name, and any after `without`, is marked exploratory.

        Examples
        --------
        >>> run = open_run("sample-zone-disks")
        >>> write = run.compare("zrs-z1", "lrs-z1", workload="randwrite-qd1")
        >>> write.disks_like_these
        <disks like these: +146 %, 95 % CI +138 to +155 %, difference>
        >>> deep = run.compare("zrs-z1", "lrs-z1", workload="randwrite-qd256")
        >>> deep.verdict, deep.change_pct
        ('capped', nan)

        Raises
        ------
        UsageError
            When the run has no such arm, workload, metric or direction, or a direction has to be named.
        """
        args = workload, metric, direction, self._left_out
        return explore.compare(self._a, [arm], base_arm, *args)[0]

    def compare_all(
        self,
        arms: Sequence[str],
        base: str,
        *,
        workload: str,
        metric: str = "lat_mean_ms",
        direction: str | None = None,
    ) -> list[ComparisonResult]:
        """Compare several arms with one; their verdicts allow for the number of comparisons.

        Takes, returns and raises what `compare` does. All are exploratory, as a family that nobody named.
        """
        return explore.compare(self._a, list(arms), base, workload, metric, direction, self._left_out)

    def without(self, query: str) -> RunResults:
        """Leave trials out, and judge the rest by the same gates.

        Parameters
        ----------
        query
            Condition on the columns of `trials`, as for `pandas.DataFrame.query`: "block == 1".

        Raises
        ------
        UsageError
            When the condition cannot be read, or no trial would be left.
        """
        trials = self._a.trials
        try:
            dropped = set(trials.query(query)["trial"])
        except Exception as error:
            raise UsageError(
                f"without: '{query}' is not a condition on the columns of trials: {error}"
            ) from None
        if not set(trials["trial"]) - dropped:
            raise UsageError(f"without: '{query}' leaves no trial of run {self.name}; leave out less")
        tables = self._a.tables
        kept = {
            name: table[~table["trial"].isin(dropped)].reset_index(drop=True)
            for name, table in vars(tables).items()
            if "trial" in table
        }
        words = f"without {query} ({len(dropped)} trials left out)"
        analysis = replace(self._a, tables=replace(tables, **kept))
        return RunResults(analysis, "; ".join(filter(None, [self._left_out, words])))

    def why(self, arm: str, workload: str) -> str:
        """Say what limits a cell, from what evidence, and what to do.

        Raises
        ------
        UsageError
            When the run has no such arm or workload.
        """
        return why_text.of_analysis(self._a, arm, workload).text

    def histogram(self, trial: str) -> pd.DataFrame:
        """Latencies of one trial: `direction`, `lat_ms`, number of `ios`, `share` of I/Os up to there.

        Raises
        ------
        UsageError
            When the run has no such trial, or its tool wrote no latencies one by one.
        """
        if trial not in set(self._a.trials["trial"]):
            raise unknown("trial", trial, self._a.trials["trial"], f"run {self.name}")
        bins = self._a.tables.bins
        of_trial = bins[bins["trial"] == trial]
        if of_trial.empty:
            raise UsageError(f"run {self.name}: trial '{trial}' has no histogram of latencies")
        by_way = of_trial.groupby("direction")["count"]
        return pd.DataFrame(
            {
                "direction": of_trial["direction"],
                "lat_ms": of_trial["lat_ns"] / 1e6,
                "ios": of_trial["count"],
                "share": by_way.cumsum() / by_way.transform("sum"),
            }
        ).reset_index(drop=True)

    def report(self) -> Answer:
        """Write report.html from the cells that this kernel has executed; show where it is, and the answer.

        Takes the last cell of an analysis notebook, behind the one that writes the results.
        """
        return of_run(self._a.run, report.report_of_this_notebook(self._a))

    def __repr__(self) -> str:
        return f"<run {self.caption}: {self.question}>"

    def _repr_html_(self) -> str:
        a = self._a
        facts = {
            "Answer": self.answer,
            "Holds for": locations.scope(headlines.of(a.comparisons, a.scenario).lead, a),
            "Run": self.name,
            "Date (UTC)": locations.dates(a),
            "Region": a.scenario.region,
            "Ran on": locations.ran_on(a),
        }
        note = "; ".join(filter(None, [comparison.source_words(a.provenance), self._left_out]))
        return comparison.box(self.question, facts, note and f"{note[0].upper()}{note[1:]}.")


def open_run(run: str | Path | RunResults, *, notebook: str | None = None) -> RunResults:
    """Open a run by its name, folder or store address, and rebuild its tables from the raw results.

    Parameters
    ----------
    run
        Name or folder of a run, its address in a store (`file://`, `abfs://`, `s3://`), of which a copy is
        kept in the cache, or an opened run, which is opened again.
    notebook
        Name of the analysis notebook that asks. It has to be that of the run's scenario, and papermill's
        parameters have to be ones that notebooks have.

    Examples
    --------
    >>> run = open_run("sample-zone-disks")
    >>> run.question
    'How much latency does zone redundancy cost, from each zone, and does it cost IOPS?'
    >>> len(run.trials), sorted(run.figures)
    (180, ['all-trials', 'percentiles', 'ratios'])

    Raises
    ------
    DiskbookError
        When there is no such run, its folder is damaged, or the notebook is not for it.
    """
    if notebook is not None:
        parameters.check_parameters()
        report.keep_outputs()
    name = run.folder if isinstance(run, RunResults) else run
    return RunResults(run_analysis.analyse(name, notebook=notebook))


WIDTH_PX = 720


class FigureView:
    """One figure of a run: it shows itself in a notebook."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    @property
    def title(self) -> str:
        """What it shows, as a sentence."""
        return self._picture.title

    @property
    def caption(self) -> str:
        """One or two sentences to stand below it."""
        return self._picture.caption

    def draw(self, ax: Axes | None = None) -> Axes:
        """Draw it, as a picture, into axes of another figure; by default into new ones."""
        import io

        import matplotlib.image as images
        import matplotlib.pyplot as plt

        axes: Axes = plt.subplots(figsize=(9, 6), layout="constrained")[1] if ax is None else ax
        axes.imshow(images.imread(io.BytesIO(figures.as_png(self._picture))))
        axes.set_axis_off()
        return axes

    def save(self, path: str | Path, width: int = WIDTH_PX) -> Path:
        """Write it as .svg or .png, for a width in pixels.

        Raises
        ------
        UsageError
            When the name ends otherwise.
        """
        target, picture = Path(path), self._picture.at(width)
        if target.suffix not in (".svg", ".png"):
            raise UsageError(f"{target}: a figure is saved as .svg or .png; name it so")
        write_atomic(target, figures.as_svg(picture) if target.suffix == ".svg" else figures.as_png(picture))
        return target

    def __repr__(self) -> str:
        return f"<figure {self._picture.slug}: {self.title}>"

    def _repr_html_(self) -> str:
        return figures.html(self._picture)


class RunFigures(Mapping[str, FigureView]):
    """The figures of a run by name, drawn when one is first asked for."""

    def __init__(self, a: Analysis, left_out: str) -> None:
        self._a, self._left_out = a, left_out

    @cached_property
    def _views(self) -> dict[str, FigureView]:
        views = {}
        for picture in write.figures_of(self._a):
            caption = picture.caption
            if self._left_out:
                caption = f"{caption} Exploratory, {self._left_out}."
            views[picture.slug] = FigureView(replace(picture, caption=caption))
        return views

    def __getitem__(self, name: str) -> FigureView:
        if name not in self._views:
            raise unknown("figure", name, self._views, f"run {self._a.run.name}")
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        return f"<figures of run {self._a.run.name}: {', '.join(self._views)}>"
