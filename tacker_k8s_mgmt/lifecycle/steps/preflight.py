"""What must be so before an operation may touch anything.

``instantiate_start`` asks it before a VM exists; ``instantiate_end`` asks it again,
because a package need not name the ``_start`` hook and things change in between.
"""

from collections.abc import Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.request.params import InstallParams


def step(deps: Dependencies) -> Step:
    """The checks as the step of an operation."""
    return Step("check package, VIM name and Ansible server", lambda: check(deps))


def check(deps: Dependencies) -> None:
    """Check everything that an instantiation needs.

    :raises PreflightError: with all findings.
    """
    site = deps.site
    findings = [
        *site.package_findings(),
        *_vim_findings(deps),
        *site.server_findings(),
    ]
    if findings:
        raise errors.PreflightError(findings)


def _vim_findings(deps: Dependencies) -> Sequence[str]:
    name = vim_name(deps.params, deps.vnf_id)
    if not deps.site.vims.name_taken(name):
        return ()
    return (
        f"vim_name: a VIM named {name!r} is registered already in this project; "
        "choose another name or delete that VIM",
    )


def vim_name(params: InstallParams, vnf_id: str) -> str:
    """The name of the cluster's VIM: as asked for, or made from the VNF's id."""
    return params.vim_name or f"kubernetes_vim_{vnf_id}"
