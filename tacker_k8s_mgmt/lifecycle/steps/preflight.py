# SPDX-License-Identifier: Apache-2.0
"""Preconditions, checked before an operation changes anything.

``instantiate_start`` checks them before a VM exists. ``instantiate_end`` checks them
again, because a package need not name the ``_start`` hook and things may have changed.
"""

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.lifecycle.steps import applications
from tacker_k8s_mgmt.request.params import InstallParams


def step(deps: Dependencies) -> Step:
    """The checks as the step of an operation."""
    return Step("check package, VIM name and Ansible server", lambda: check(deps))


def check(deps: Dependencies) -> None:
    """Check everything that an instantiation needs.

    :raises PreflightError: with all findings.
    """
    name = vim_name(deps.params, deps.vnf_id)
    findings = [
        *deps.settings.problems,
        *applications.package_problems(deps.params, deps.site),
    ]
    if deps.site.vims.name_taken(name):
        findings.append(
            f"vim_name: a VIM named {name!r} is registered already in this project; "
            "choose another name or delete that VIM"
        )
    check_server(deps.site, *findings)


def check_server(site: ports.Preconditions, *findings: str) -> None:
    """Check the VNF package and the Ansible server.

    :param findings: of other checks.
    :raises PreflightError: with all findings.
    """
    findings = (*site.package_findings(), *findings, *site.server_findings())
    if findings:
        raise errors.PreflightError(findings)


def vim_name(params: InstallParams, vnf_id: str) -> str:
    """The name of the cluster's VIM: the request's, or one made of the VNF's id."""
    return params.vim_name or f"kubernetes_vim_{vnf_id}"
