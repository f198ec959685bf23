"""What must be so before an operation may touch anything.

``instantiate_start`` asks it before a VM exists; ``instantiate_end`` asks it again,
because a package need not name the ``_start`` hook and things change in between.
"""

from collections.abc import Callable, Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.request.params import InstallParams


class Preflight:
    """Every check of an instantiation, all findings in one error."""

    def __init__(self, params: InstallParams, vnf_id: str, site: ports.Site) -> None:
        self._params = params
        self._vnf_id = vnf_id
        self._site = site

    def step(self) -> Step:
        """The checks as the step of an operation."""
        return Step("check package, VIM name and Ansible server", self.check)

    def check(self) -> None:
        """Look at everything.

        :raises PreflightError: with all findings.
        """
        checks: Sequence[Callable[[], Sequence[str]]] = (
            self._site.package_findings,
            self._vim_findings,
            self._site.server_findings,
        )
        findings = [finding for check in checks for finding in check()]
        if findings:
            raise errors.PreflightError(findings)

    def _vim_findings(self) -> Sequence[str]:
        name = vim_name(self._params, self._vnf_id)
        if not self._site.vims.name_taken(name):
            return ()
        return (
            f"vim_name: a VIM named {name!r} is registered already in this project; "
            "choose another name or delete that VIM",
        )


def vim_name(params: InstallParams, vnf_id: str) -> str:
    """The name of the cluster's VIM: as asked for, or made from the VNF's id."""
    return params.vim_name or f"kubernetes_vim_{vnf_id}"
