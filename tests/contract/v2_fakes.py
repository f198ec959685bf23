# SPDX-License-Identifier: Apache-2.0
"""The fakes of the unit tests in the place of SSH, Heat and the cluster of a script.

:func:`enter` puts them there, in the process of a hook. Nothing of Tacker is imported
that the hook itself would not import: every hook in every test would pay for it.
"""

import atexit
import os
import pickle
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path

from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.helpers.fakes.site import FakeSite


class Site(FakeSite):
    """A fake site that is used as the hooks use the real one.

    :ivar noisy: whether it prints on all ways.
    :ivar hangs: a file that it makes before it waits for ever.
    """

    noisy = False
    hangs = ""

    def __enter__(self):
        if self.noisy:
            print("noise")
            print("noise", file=sys.stderr)
            os.write(1, b"noise")
            os.write(2, b"noise")
            subprocess.run(["sh", "-c", "echo noise; echo noise >&2"], check=True)
            warnings.warn("noise", stacklevel=1)
        if self.hangs:
            Path(self.hangs).write_text(str(os.getpid()))
            threading.Event().wait()
        return self

    def __exit__(self, *_):
        pass

    def machines(self):
        found = super().machines()
        stacks = {server: stack for server, _, stack in self.vnfcs()}
        places = {
            server: found.places[server] | {server, stacks.get(server, server)}
            for server in found.places
        }
        return replace(found, places=places, groups=self.scaling_groups(places))

    def resources(self):
        """What Heat has of the servers: each is in a stack of its own."""
        self.touch("resources")
        return [
            StackResource(stack, vdu, "OS::Nova::Server", server, self._status(server))
            for server, vdu, stack in self.vnfcs()
        ]

    def _status(self, server):
        return "CREATE_FAILED" if server in self.unfinished else "CREATE_COMPLETE"

    def vnfcs(self):
        every = [*self.control_planes, *self.workers]
        every += [self.load_balancer] if self.load_balancer else []
        for one in every:
            vdu = {"control-plane": "masterNode", "worker": "workerNode"}.get(
                one.role.value, "externalLB"
            )
            yield one.server_id, vdu, f"stack-of-{one.address}"


def enter(path):
    """Put the fakes in place, in the script's process."""
    from tacker_k8s_mgmt.hooks.v2 import connections, stack
    from tacker_k8s_mgmt.hooks.v2.hook import V2Hook

    with open(path, "rb") as file:
        site = pickle.load(file)  # noqa: S301

    def made(hook, _params):
        site.vims = connections.VimEntry(hook.call.instance)
        return site

    def keep():
        site.vims = None
        site.runs.clear()
        Path(path).write_bytes(pickle.dumps(site))

    V2Hook.site = made
    vars(stack).update(resources_of=lambda call: site.resources())
    atexit.register(keep)
