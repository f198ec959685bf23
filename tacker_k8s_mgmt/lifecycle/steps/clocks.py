# SPDX-License-Identifier: Apache-2.0
"""The clocks of the VMs, compared with that of this host.

Certificates and tokens are valid from a moment on, and etcd's and Kubernetes' leases
are of seconds; a node whose clock is far ahead or behind fails in ways that do not name
the clock.
"""

from collections.abc import Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.model import clock_skew
from tacker_k8s_mgmt.model.nodes import Node

LOG = logging.getLogger(__name__)


def see(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Check the clocks of nodes, before a playbook runs.

    :param nodes: those that have been logged in to in this operation count.
    :raises ClusterError: naming those that are far ahead or behind.
    """
    ahead = state.site.clocks()
    seen = {n.name: ahead[n.server_id] for n in nodes if n.server_id in ahead}
    far = clock_skew.listed(seen, clock_skew.REFUSED)
    if far:
        raise errors.ClusterError(
            detail=f"The clocks of these VMs differ from that of Tacker's conductor by "
            f"more than {clock_skew.REFUSED:g} s: {far}. No playbook was run.",
            hint=clock_skew.HINT,
        )
    if late := clock_skew.listed(seen, clock_skew.NOTED):
        LOG.warning(
            "The clocks of these VMs differ from that of Tacker's conductor: %s. %s",
            late,
            clock_skew.HINT,
        )
