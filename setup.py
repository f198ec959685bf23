# SPDX-License-Identifier: Apache-2.0
"""Packages and their data; everything else is in pyproject.toml.

The samples and scripts lie at the top of the source tree, where an operator looks for
them, and are installed as data below the package, where ``csar build`` finds them.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["tacker_k8s_mgmt", "tacker_k8s_mgmt.*"]),
        "tacker_k8s_mgmt.samples",
        "tacker_k8s_mgmt.scripts",
    ],
    package_dir={
        "tacker_k8s_mgmt": "tacker_k8s_mgmt",
        "tacker_k8s_mgmt.samples": "samples",
        "tacker_k8s_mgmt.scripts": "scripts",
    },
    package_data={
        "tacker_k8s_mgmt.tools.render": ["*.j2"],
        "tacker_k8s_mgmt.tools.csar": ["*.json"],
        "tacker_k8s_mgmt.request": ["platforms/*.yaml"],
        "tacker_k8s_mgmt.remote.ansible": ["run_files/*"],
        "tacker_k8s_mgmt.samples": ["**/*"],
        "tacker_k8s_mgmt.scripts": ["*"],
    },
    exclude_package_data={"": ["**/__pycache__/*", "__pycache__/*", "*.pyc", "*~"]},
    include_package_data=False,
)
