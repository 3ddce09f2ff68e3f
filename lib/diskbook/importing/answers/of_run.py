"""The answer of a public data set as that of its run: report, figures and post lead with it.

`report.analysis.companion_files` names these functions' module; runs of other files get none of them.
"""

import pandas as pd

from diskbook.api import comparison
from diskbook.facts.table_writers import capital
from diskbook.importing.answers import questions
from diskbook.importing.answers.questions import Answer
from diskbook.report.analysis.run import Analysis
from diskbook.report.figures import Picture, html
from diskbook.report.show import locations
from diskbook.report.show.html import Html, table
from diskbook.report.show.tables import bullets


def answer_of(a: Analysis) -> Answer | None:
    """Return the answer of a run's data set, None where it has none."""
    return questions.of_dataset(str(locations.data_set(a).get("name", "")))


def headline(a: Analysis) -> str:
    """Answer the question of an imported data set in a sentence; "" for other runs."""
    answer = answer_of(a)
    return answer.headline if answer else ""


def pictures(a: Analysis) -> tuple[Picture, ...]:
    """Figures of a data set's run, its main figure first; none for other runs."""
    answer = answer_of(a)
    return (answer.picture, a.all_trials) if answer else ()


def post_lead(a: Analysis) -> tuple[str, str] | None:
    """Title and first paragraph of the post of a data set's run."""
    answer = answer_of(a)
    return (answer.title, " ".join(answer.findings)) if answer else None


def post_table(a: Analysis) -> tuple[pd.DataFrame, str] | None:
    """Table of the post of a data set's run, with its caption."""
    answer = answer_of(a)
    return (answer.table, f"{answer.caption} (measured by others)") if answer else None


def shown(a: Analysis) -> Html:
    """Show what the data set's figures say: main figure, sentences and numbers; nothing for other runs."""
    answer = answer_of(a)
    if answer is None:
        return Html("")
    return of_answer(answer)


def of_answer(answer: Answer) -> Html:
    """Show an answer: main figure, sentences and numbers."""
    parts = (
        html(answer.picture),
        bullets(answer.findings),
        table(answer.table, f"{answer.caption} (measured by others)"),
    )
    return Html("".join(parts))


def cards() -> Html:
    """Show a card per question that public data answer, with its source."""
    return Html("".join(map(_card, questions.every())))


def _card(answer: Answer) -> str:
    source = answer.source
    facts = {
        "Answer": f"{capital(answer.headline)}.",
        "Measured": f"{source['measured']}, by {source['authors']}",
        "Licence": str(source["licence"]),
    }
    return comparison.box(answer.question, facts, "Measured by others") + '<p style="margin:.2em 0 1em"></p>'
