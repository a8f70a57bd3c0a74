"""How Sphinx builds the site: `make docs`. Nothing of it asks for anything from outside."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "_extensions"))

project = "Stentor"
copyright = "the Stentor developers"
version = release = version_of("stentor")
language = "en"

extensions = [
    "commands",
    "settings",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "_extensions", "conf.py"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
# Blocks of these kinds are checked by tests/docs; to a reader they are tables of text.
suppress_warnings = ["misc.highlighting_failure"]

smartquotes = False  # `--out` in a sentence stays what one types
default_role = "code"  # of docstrings, which mark code as pages do

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autoclass_content = "both"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "Stentor"
html_static_path = ["_static"]
html_css_files = ["stentor.css"]
html_copy_source = False
html_show_sphinx = False
