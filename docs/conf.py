"""Sphinx configuration."""

from __future__ import annotations

import outlearn

project = "outlearn"
author = "The outlearn developers"
copyright = "2026, the outlearn developers"
version = release = outlearn.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
html_theme = "furo"
html_title = "outlearn"


def _keep_bars(app, what, name, obj, options, lines):
    """Let |c| in a docstring be an absolute value, not a reStructuredText substitution."""
    for k, line in enumerate(lines):
        if not line.lstrip().startswith(">>>"):
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[k] = "``".join(parts)


def setup(app):
    """Register what autodoc needs to read our docstrings."""
    app.connect("autodoc-process-docstring", _keep_bars)
