# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sphinx's settings for the site of these documents. scripts/docs_site.py prepares the sources and runs it."""
import re
import sys
import types

from sphinx.ext.autodoc.mock import _MockModule

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

# The site is made without PyTorch: what the package wants of it while it is imported is stood in for.
autodoc_mock_imports = ["torch", "transformers"]
# JAX is asked for its version and told of handlers while wavejit.jax is imported, which a stand-in of Sphinx's cannot answer.
for _name in ("jax", "jax.numpy", "jax.custom_derivatives", "jax.experimental", "jax.experimental.custom_partitioning", "jax.sharding"):
    sys.modules[_name] = _MockModule(_name)
sys.modules["jax"].__version__, sys.modules["jax"].__version_info__ = "0.12", (0, 12)
sys.modules["jax"].ffi = types.SimpleNamespace(include_dir=lambda: "", register_ffi_target=lambda *_, **__: None)
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures are long enough without

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["static"]
html_css_files = ["code.css"]
html_copy_source = False
html_show_sphinx = False


def terms_apart(lines):
    """A word with its explanation below begins a paragraph, and bars are magnitudes: |i - j|."""
    at = 1
    while at < len(lines):
        if not lines[at].startswith((" ", ">>>", "...")):
            explained = at + 1 < len(lines) and lines[at + 1].startswith("    ")
            if lines[at].strip() and explained and lines[at - 1].strip() and not lines[at - 1].startswith(" "):
                lines.insert(at, "")
                at += 1
        if not lines[at].lstrip().startswith((">>>", "...")):
            lines[at] = re.sub(r"(?<!\\)\|([^|]+)\|", r"\\|\1\\|", lines[at])
        at += 1


def examples_as_code(_app, _what, _name, _object, _options, lines):
    """An indented piece of a docstring is an example: one block of code, not a quotation whose lines run together."""
    terms_apart(lines)
    at = 1
    while at < len(lines):
        begins = lines[at].startswith("    ") and not lines[at - 1].strip()
        before = next((line for line in reversed(lines[:at]) if line.strip()), "")
        if not begins or before.startswith((" ", "..", "- ", "* ")) or before.rstrip().endswith("::"):
            at += 1
            continue
        lines[at:at] = [".. code-block:: python", ""]
        at += 2
        while at < len(lines) and (not lines[at].strip() or lines[at].startswith("    ")):
            at += 1


def setup(app):
    app.connect("autodoc-process-docstring", examples_as_code)
