"""Show links to files of the repository that are not pages of the site as their paths.

On a code host such a link opens the file. The site is served or e-mailed without the repository. Addresses of
stores in help texts (`file:///srv/lab`) are not links either.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

LINK = re.compile(
    r"\[([^\]]+)\]\((?:\.\./)+((?:data|notebooks|lib|checks|tests|figures|README|SECURITY|CONTRIBUTING)[^)]*)\)"
)


def as_paths(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace each link out of `docs` by its text and path."""
    if not docname.startswith("samples/"):
        source[0] = LINK.sub(_path, source[0])


def _path(link: re.Match[str]) -> str:
    words, path = link.groups()
    plain = words.strip("`")
    return f"`{path}`" if path.rstrip("/").endswith(plain) else f"{words} (`{path}`)"


def unlink_stores(app: Sphinx, doctree: nodes.document) -> None:
    """Turn links to addresses of stores into text."""
    for link in list(doctree.findall(nodes.reference)):
        if link.get("refuri", "").startswith("file:"):
            link.parent.replace(link, nodes.literal("", link.astext()))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", as_paths)
    app.connect("doctree-read", unlink_stores)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
