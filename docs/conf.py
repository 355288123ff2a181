"""Sphinx configuration of the documentation site."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "ext"), str(HERE.parent / "experiments"), str(HERE.parent)]

import azjax  # noqa: E402, after the path is set

project = "azjax"
author = "the azjax authors"
copyright = author
version = release = azjax.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "board_page",
    "docstrings",
    "generated_pages",
]
exclude_patterns = ["_build", "ext", "**/.ipynb_checkpoints"]
templates_path: list[str] = []
default_role = "literal"  # docstrings have single backquotes around code

nb_execution_mode = "off"  # tests execute the examples
linkcheck_ignore = [r"https?://(localhost|127\.0\.0\.1)\b"]
linkcheck_timeout = 20  # seconds

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

autosummary_generate = False
autodoc_member_order = "groupwise"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 200
toc_object_entries_show_parents = "hide"

html_theme = "sphinx_book_theme"
html_title = "azjax"
html_static_path: list[str] = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_favicon = "../azjax/play/web/icon.svg"
html_context = {"default_mode": "auto"}  # else the theme reports an error on each page
html_theme_options: dict = {
    "show_toc_level": 1,
    "navbar_persistent": [],
    "use_download_button": False,
    "use_fullscreen_button": False,
}

# On GitHub the pages link the repository from which they are built.
if repository := os.environ.get("GITHUB_REPOSITORY"):
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    html_theme_options |= {
        "repository_url": f"{server}/{repository}",
        "use_repository_button": True,
        "use_issues_button": True,
    }

# The published site has a directory for each version and a menu of them; a version that
# is built for oneself has no menu. See `ext/published_site.py`.
if published := os.environ.get("DOCS_VERSION", "").removeprefix("v"):
    html_sidebars = {
        "**": [
            "navbar-logo.html",
            "version-switcher.html",
            "search-button-field.html",
            "sbt-sidebar-nav.html",
        ]
    }
    html_theme_options |= {
        "switcher": {"json_url": "../versions.json", "version_match": published},
        "check_switcher": False,  # the file is on the site only
        "show_version_warning_banner": True,
    }
