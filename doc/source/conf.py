# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration; ``make docs`` builds with warnings as errors.

Beside Sphinx and the project's requirements, nothing is needed to build: what is not
installed of theme, drawings and release notes is replaced by plainer means.
"""

import importlib.util
import logging
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE / "_ext"), str(ROOT)]

project = "tacker-k8s-mgmt"
copyright = "the tacker-k8s-mgmt authors"
extensions = [
    *("anchors", "diagram", "option_table", "parameter_table", "transcripts"),
]
# A block without a language is one of commands.
highlight_language = "shell"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = project
html_theme = "alabaster"
html_theme_options = {"description": "Kubernetes cluster VNFs for OpenStack Tacker"}
if importlib.util.find_spec("furo"):
    html_theme = "furo"
    html_theme_options = {
        "light_css_variables": {
            "color-brand-primary": "#a3162d",
            "color-brand-content": "#a3162d",
        },
        "dark_css_variables": {
            "color-brand-primary": "#ff8a95",
            "color-brand-content": "#ff8a95",
        },
    }

if importlib.util.find_spec("sphinx_copybutton"):
    extensions.append("sphinx_copybutton")
    copybutton_prompt_text = "$ "

# reno reads the history of the notes, which only a clone has.
if importlib.util.find_spec("reno") and (ROOT / ".git").exists():
    extensions.append("reno.sphinxext")
    logging.getLogger("reno").setLevel(logging.WARNING)
else:
    exclude_patterns = ["release-notes.rst"]
    suppress_warnings = ["toc.excluded"]
