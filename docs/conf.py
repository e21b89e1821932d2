"""How Sphinx makes the site: `make docs`."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import warnings

project = "roarfast"
author = "The roarfast authors"
project_copyright = "The roarfast authors"
release = importlib.metadata.version("roarfast")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "gallery/**.ipynb",
    "gallery/**.py",
    "gallery/**.md5",
    "gallery/**.zip",
    "results/*/tables",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
default_role = "code"  # docstrings write `names` as Markdown does

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "imported-members": True, "show-inheritance": False}
autodoc_preserve_defaults = True
# autodoc sees the names that a package has already; these load theirs when they are asked for.
for package in map(
    importlib.import_module, ("roarfast.metrics", "roarfast.explain", "roarfast.data", "roarfast.study")
):
    for public in package.__all__:
        setattr(package, public, getattr(package, public))
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # fields described in a class docstring are not described again
napoleon_custom_sections = [("Shapes", "params_style")]

html_theme = "pydata_sphinx_theme"
html_title = f"roarfast {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "header_links_before_dropdown": 4,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
}
html_sidebars = {"*": []}  # pages of the first level have no section to navigate in
html_show_sourcelink = False
html_copy_source = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": True,
}
os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's 15 starves the tutorial on a busy machine
# Sphinx pickles its environment; a gallery configuration made of strings can be cached, so nothing is to be said about it.
warnings.filterwarnings("ignore", message="Matplotlib is currently using agg")
