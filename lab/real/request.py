"""Requests for the real laboratory: a sample's, with what the laboratory needs.

The mirror is named by those parameters that an operator of a closed network would use.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lab.cloud.systemd import variables
from lab.real.site import Site
from lab.services.mirror import FILES_URL, REGISTRY_ADDRESS

PARAMETERS = "k8s_cluster_installation_param"
PLUGIN = "flannel"
#: A mirror's own checksums: kubespray's are those of the files that projects publish.
CHECKSUMS = "checksums.yaml"


def adapted(sample: Mapping[str, Any], site: Site) -> dict[str, Any]:
    """A body to instantiate a cluster, made from a sample request."""
    body = copy.deepcopy(dict(sample))
    body["additionalParams"][PARAMETERS].update(parameters(site.mirror))
    return body


def parameters(mirror: Path) -> dict[str, Any]:
    """Structures of our parameters that a sample request has not.

    :param mirror: the one of the release of kubespray.
    """
    registry = {
        "prefix": REGISTRY_ADDRESS,
        "mirrors": [f"http://{REGISTRY_ADDRESS}"],
        "skip_tls_verify": True,
    }
    checksums = mirror / CHECKSUMS
    known = yaml.safe_load(checksums.read_text()) if checksums.exists() else {}
    offline = {"files_repo": FILES_URL, "registry_host": REGISTRY_ADDRESS}
    return {
        "cluster": {
            "network": {"plugin": PLUGIN},
            "offline": offline,
            "registries": [registry],
        },
        "kubespray_vars": {
            **variables.kubespray(),
            # Nothing that is missing in the mirror comes to be there while one waits.
            "download_retries": 1,
            **known,
        },
    }
