"""The Heat stack of an instantiation that was given up.

Tacker 16's v1 API keeps it after ``fail``, and after the rollback of an operation whose
conductor was killed while Heat made the VMs. A later instantiation gives its stack the
same name (``OpenStack._create_stack_with_user_data``), which Heat would refuse.
"""

from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import rollback
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.remote.backoff import Backoff

_LIMIT = 600.0  # seconds for Heat to delete it
_FAILED = "DELETE_FAILED"


class LeftStack:
    """The stack that bears the name of a VNF instance which has none.

    :param site: where a playbook may still run for its VMs.
    """

    def __init__(self, context: Any, vnf_instance: Any, site: ports.Site) -> None:
        self._context = context
        self._instance = vnf_instance
        self._site = site
        self._name = f"vnflcm_{vnf_instance.id}"

    def step(self) -> Step:
        """Its deletion as the step of ``instantiate_start``."""
        name = "delete the stack of an instantiation that was given up"
        return Step(name, self._delete, probe=self._is_gone)

    def _is_gone(self) -> bool:
        return self._find() is None

    def _delete(self) -> None:
        if self._site.workdir.owner() == self._instance.id:
            # Whoever has it still works on these VMs.
            self._site.lock()
            self._site.playbooks.stop()
        stack = self._find()
        if stack is None:
            return
        self._ask(lambda client: client.delete(stack.id))
        waiting = Backoff(_LIMIT)
        while (stack := self._find()) is not None:
            if stack.stack_status == _FAILED or waiting.spent():
                raise errors.RemoteError(
                    detail=f"Heat did not delete the stack {self._name}, which an "
                    f"earlier instantiation left: it is {stack.stack_status}.",
                    hint="Look why with `openstack stack failures list --long`, and "
                    "delete it with `openstack stack delete`.",
                )
            waiting.pause()

    def _find(self) -> Any:
        return self._ask(lambda client: client.find_stack(name=self._name))

    def _ask(self, question: Any) -> Any:
        try:
            return question(rollback.heat_of(self._context, self._instance))
        except Exception as error:
            # Whatever the client, its session or the token's renewal may raise.
            raise errors.RemoteError(
                detail=f"Heat was asked for the stack {self._name} in vain: "
                f"{error or type(error).__name__}.",
                hint="Check that Heat answers with the VIM's credentials.",
            ) from error
