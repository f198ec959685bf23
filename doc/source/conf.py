"""Sphinx configuration; ``make docs`` builds with warnings as errors."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent.parent)]

project = "tacker-k8s-mgmt"
copyright = "the tacker-k8s-mgmt authors"
extensions = ["option_table", "parameter_table", "sphinx.ext.autodoc"]
html_theme = "alabaster"
html_theme_options = {"description": "Kubernetes cluster VNFs for OpenStack Tacker"}
