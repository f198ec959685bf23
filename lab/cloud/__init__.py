# SPDX-License-Identifier: Apache-2.0
"""The lab's cloud: a stand-in for hypervisor and network service.

Servers are Linux namespaces with their own file system and sshd, networks are Linux
bridges. Heat reaches it through the resource plugins in ``heat_plugins``; people and
the lab's start reach it through ``python3 -m lab.cloud``. Everything here is standard
library only, because it runs with the system's Python inside the lab's namespaces.
"""

from lab import LabError


class CloudError(LabError):
    """The lab's cloud cannot do what was asked."""
