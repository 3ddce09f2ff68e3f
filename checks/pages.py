"""Write the pages and files that are made from code: `python -m checks.pages` (in `make format`).

Some pages are made whole. Of others a part between two marks is made, and the rest is written by hand.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from checks import (
    afternoon,
    articles,
    azure_rules,
    campaign,
    choose_caps,
    documents,
    formats,
    house,
    limits_data,
    protocol,
    reference_pages,
)
from diskbook.facts import paths
from diskbook.importing.answers import post, questions

WHOLE: Mapping[Path, Callable[[], str]] = {
    articles.PAGE: articles.page,
    formats.PAGE: formats.page,
    azure_rules.PAGE: azure_rules.page,
    documents.PAGE: documents.page,
}
PARTS: Mapping[Path, Callable[[], str]] = {
    house.GUIDE: lambda: house.picture(house.layers()),
    protocol.PAGE: protocol.points,
    afternoon.PAGE: afternoon.table,
    choose_caps.PAGE: choose_caps.table,
    campaign.PAGE: lambda: campaign.tables(campaign.read()),
    **reference_pages.PAGES,
}
BEGIN, END = "<!-- made by make format: begin -->", "<!-- made by make format: end -->"


def made(path: Path) -> str:
    """Return a page as it has to be now."""
    if path in WHOLE:
        return WHOLE[path]()
    before, _, rest = path.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n\n{PARTS[path]().strip()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    for path in (*WHOLE, *PARTS):
        path.write_text(made(path), "utf-8")
    limits_data.write()
    for answer in questions.every():
        for name, content in post.files(answer).items():
            (paths.POSTS / name).parent.mkdir(exist_ok=True)
            (paths.POSTS / name).write_bytes(content)
