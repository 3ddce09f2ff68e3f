"""Settings of the documentation site (`make docs`): no request to the network, no notebook executed."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "lib")]

from diskbook import __version__  # noqa: E402

project = "diskbook"
author = "The diskbook authors"
copyright = "the diskbook authors, MIT licence"
release = version = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_click",
    "samples",
    "gallery",
    "repository_links",
    "glossary_links",
]
exclude_patterns = ["_build", "_ext", "_static"]
nitpicky = False
suppress_warnings = ["myst.header"]  # reports begin sections at the level that they have in a notebook

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "application/vnd.diskbook.answer+json", None)]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False

html_context = {"default_mode": "auto"}
html_theme = "pydata_sphinx_theme"
html_title = "diskbook"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
