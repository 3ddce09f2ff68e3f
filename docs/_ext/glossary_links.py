"""Link the first use of each term of the glossary on every page."""

import re

from docutils import nodes
from sphinx.application import Sphinx

GLOSSARY = "glossary"
EVERYDAY = {"bin", "closed", "family", "open", "plan", "probe", "session", "settle", "visit"}
"""Terms that mostly occur as everyday words, so their uses are not linked."""
NOT_IN = (
    nodes.reference,
    nodes.literal,
    nodes.literal_block,
    nodes.title,
    nodes.term,
    nodes.raw,
    nodes.image,
)


def link_terms(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn the first plain use of each term in running text into a link."""
    terms = {
        name.lower(): target
        for (kind, name), (page, target) in app.env.domains["std"].objects.items()
        if kind == "term" and page == GLOSSARY and name.lower() not in EVERYDAY
    }
    if docname == GLOSSARY or not terms or app.builder.name != "html":
        return
    names = "|".join(sorted(map(re.escape, terms), key=len, reverse=True))
    pattern = re.compile(rf"\b({names})(s?)\b", re.IGNORECASE)
    seen: set[str] = set()
    for paragraph in list(doctree.findall(nodes.paragraph)):
        for text in list(paragraph.findall(nodes.Text)):
            if not _is_inside(text, paragraph):
                _link(text, pattern, terms, seen, app.builder.get_relative_uri(docname, GLOSSARY))


def _is_inside(text: nodes.Text, paragraph: nodes.Element) -> bool:
    node = text.parent
    while node is not paragraph:
        if isinstance(node, NOT_IN):
            return True
        node = node.parent
    return False


def _link(
    text: nodes.Text, pattern: re.Pattern[str], terms: dict[str, str], seen: set[str], page: str
) -> None:
    parts: list[nodes.Node] = []
    end = 0
    words = text.astext()
    for match in pattern.finditer(words):
        term = match[1].lower()
        if term in seen:
            continue
        seen.add(term)
        parts.append(nodes.Text(words[end : match.start()]))
        parts.append(
            nodes.reference("", match[0], refuri=f"{page}#{terms[term]}", internal=True, classes=["term"])
        )
        end = match.end()
    if parts:
        text.parent.replace(text, [*parts, nodes.Text(words[end:])])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", link_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
