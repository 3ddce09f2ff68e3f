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


def _house(page: str) -> str:
    return house.with_picture(
        page, house.picture(house.layers((paths.ROOT / "pyproject.toml").read_text("utf-8")))
    )


PAGES: Mapping[Path, Callable[[str], str]] = {
    house.GUIDE: _house,
    articles.PAGE: lambda _: articles.page(),
    protocol.PAGE: lambda page: protocol.with_points(page, protocol.points()),
    formats.PAGE: lambda _: formats.page(),
    azure_rules.PAGE: lambda _: azure_rules.page(),
    afternoon.PAGE: afternoon.with_table,
    documents.PAGE: lambda _: documents.page(),
    choose_caps.PAGE: choose_caps.with_table,
    campaign.PAGE: lambda page: campaign.with_tables(page, campaign.tables(campaign.read())),
}
"""Each page, and what makes it of the page as it is."""

if __name__ == "__main__":
    for path, make in PAGES.items():
        path.write_text(make(path.read_text("utf-8")), "utf-8")
    for path in reference_pages.PAGES:
        path.write_text(reference_pages.with_tables(path), "utf-8")
    limits_data.write()
    for answer in questions.every():
        for name, content in post.files(answer).items():
            (paths.POSTS / name).parent.mkdir(exist_ok=True)
            (paths.POSTS / name).write_bytes(content)
