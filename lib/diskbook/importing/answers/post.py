"""Posts of what public measurements answer, as Markdown with one figure; they come with the workbook."""

import json

from diskbook.facts import table_writers
from diskbook.facts.table_writers import Table, bullets, capital, code, markdown_escaped as escaped
from diskbook.importing.answers.questions import Answer
from diskbook.report.figures import as_png, as_svg, data_csv
from diskbook.report.show.html import BY_OTHERS


def files(answer: Answer) -> dict[str, bytes]:
    """Render a post: its Markdown and its figure's files, by their path beside each other."""
    picture, folder = answer.picture, answer.slug
    return {
        f"{folder}.md": text(answer).encode(),
        f"{folder}/{folder}.svg": as_svg(picture),
        f"{folder}/{folder}@2x.png": as_png(picture),
        f"{folder}/{folder}.csv": data_csv(picture.data),
    }


def text(answer: Answer) -> str:
    """Write the Markdown of a post."""
    path, source = f"{answer.slug}/{answer.slug}", answer.source
    whose = f"{source['authors']}: {source['title']}, {source['measured']}, region {source['region']}"
    commit = f"{source['repository']} at commit {source['commit'][:12]}"
    again = ["jupyter lab notebooks/7-real-disks.ipynb  # computes every number in the open"]
    if "run" in source:
        again.append(f"diskbook import --dataset {answer.dataset} --report  # makes a run and its report")
    about = (
        f"{whose}.",
        f"{commit}, licence {source['licence']}, retrieved {source['retrieved']}.",
        f"Not known: {'; '.join(source['unknown'])}.",
        f"Attribution: {source['attribution']}.",
    )
    parts = [
        f"---\ntitle: {json.dumps(answer.title)}\ndescription: {json.dumps(capital(answer.headline))}\n---",
        f"# {escaped(answer.title)}",
        f"**{escaped(BY_OTHERS)}**",
        f"The question: *{escaped(answer.question)}*",
        escaped(" ".join(f"{capital(part)}." for part in answer.headline.split("; "))),
        bullets([escaped(line) for line in answer.findings]),
        f"![{escaped(answer.picture.alt)}]({path}.svg)",
        f"*{escaped(answer.picture.caption)}* ([PNG]({path}@2x.png), [numbers]({path}.csv))",
        table_writers.markdown(Table.of(answer.table, f"{answer.caption} (measured by others)")),
        "## Who measured it",
        bullets([escaped(line) for line in about]),
        "## Compute it again",
        code(*again),
    ]
    return "\n\n".join(parts) + "\n"
