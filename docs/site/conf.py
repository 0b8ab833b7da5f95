# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sphinx's settings for the site of these documents. scripts/docs_site.py prepares the sources and runs it."""
project = "wavejit"
copyright = "wavejit's developers"  # noqa: A001: Sphinx's name
author = "wavejit's developers"
html_title = "wavejit"

# Pages are Markdown, as they are read in the tree; the Python reference comes from docstrings.
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
# Links to headings are checked, four levels deep.
myst_heading_anchors = 4
suppress_warnings = ["myst.xref_ambiguous", "myst.header", "misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures are long enough without

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sphinx = False
