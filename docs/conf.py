"""The site: ``make docs`` builds it, without network, and any warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

from equipoise import __version__

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]

project = "Equipoise"
author = "The Equipoise developers"
project_copyright = "The Equipoise developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "api_pages",
    "command_pages",
    "diagrams",
    "shown_output",
]
exclude_patterns = ["_extensions", "pictures", "paper", "**/.ipynb_checkpoints"]

# Markdown. No mathematics that a browser would have to fetch a script for: formulas are plain text.
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True  # files that a notebook writes are not left in this folder
nb_merge_streams = True

# Docstrings are numpydoc; a page per public name is written by the extension `api_pages`.
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
add_module_names = False
toc_object_entries_show_parents = "hide"
smartquotes = False  # a dash of an option is a dash
python_maximum_signature_line_length = 80

html_theme = "pydata_sphinx_theme"
html_title = "Equipoise"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
html_theme_options = {
    "logo": {"text": "Equipoise", "image_light": "_static/favicon.svg",
             "image_dark": "_static/favicon.svg"},
    "show_prev_next": True,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],  # the other one is named otherwise than it reads
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}  # fmt: skip
html_sidebars = {"index": []}
copybutton_exclude = ".linenos, .gp, .go"
