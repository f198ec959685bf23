# SPDX-License-Identifier: Apache-2.0
"""The structure ``cluster.openstack``: the OpenStack that the cluster itself uses."""

from collections.abc import Iterator
from typing import Annotated

from tacker_k8s_mgmt.request.field_types import Flag
from tacker_k8s_mgmt.request.key_aliases import Structure
from tacker_k8s_mgmt.request.option_metadata import Becomes, opened
from tacker_k8s_mgmt.request.option_types import (
    OptionalFile,
    OptionalSecret,
    OptionalText,
    Text,
    Url,
)

# The end of the variables' names by option.
_USER = {
    **{name: name for name in ("username", "password", "domain_id", "domain_name")},
    **{"project_id": "tenant_id", "project_name": "tenant_name"},
}
CREDENTIAL = tuple(
    f"application_credential_{part}" for part in ("id", "name", "secret")
)
_LOGIN = {
    **{name: name for name in ("auth_url", "region", *CREDENTIAL)},
    **{"ca_file": "cacert"},
    **_USER,
}


def login_variables(prefix: str) -> Iterator[str]:
    """The variables that :meth:`OpenStack.login` sets."""
    return (f"{prefix}_{end}" for end in _LOGIN.values())


class OpenStack(Structure):
    """The OpenStack below the cluster, and the cluster's login there.

    An application credential is preferable: it can be revoked without affecting others.
    kubespray needs its id, name and secret.
    """

    auth_url: Url
    """Keystone's URL, as the nodes reach it: https://.../v3."""
    region: Text
    """Name of the region."""
    application_credential_id: OptionalText = None
    """Id of an application credential."""
    application_credential_name: OptionalText = None
    """Name of that application credential."""
    application_credential_secret: OptionalSecret = None
    """Secret of that application credential."""
    username: OptionalText = None
    """User name, where there is no application credential."""
    password: OptionalSecret = None
    """Password of that user."""
    project_id: OptionalText = None
    """Project of that user; this or project_name."""
    project_name: OptionalText = None
    """Project of that user; this or project_id."""
    domain_id: OptionalText = None
    """Domain of that user; this or domain_name."""
    domain_name: OptionalText = None
    """Domain of that user; this or domain_id."""
    ca_file: OptionalFile = None
    """Absolute path of a file with the CA certificate of OpenStack's API: on the
    Ansible server for Cinder's driver, and at the same place on the first control plane
    for the cloud controller, as kubespray reads it."""
    cloud_controller: Annotated[
        Flag,
        Becomes("cloud_provider", value=lambda _: "external"),
        Becomes("external_cloud_provider", value=lambda _: "openstack"),
        Becomes(*login_variables("external_openstack"), value=None),
        Becomes("kubelet_config_extra_args", value=None),
    ] = False
    """Run OpenStack's cloud controller: Services of type LoadBalancer, and nodes with
    their zones and addresses. Default: false."""
    load_balancer_subnet_id: Annotated[
        OptionalText, Becomes("external_openstack_lbaas_subnet_id")
    ] = None
    """Subnet of those Services' addresses (cloud controller)."""
    load_balancer_floating_network_id: Annotated[
        OptionalText, Becomes("external_openstack_lbaas_floating_network_id")
    ] = None
    """Network of those Services' floating IPs (cloud controller)."""

    def login(self, prefix: str) -> dict[str, str]:
        """The login variables of the cloud controller or of the Cinder driver.

        Options without a value are set to "", because kubespray's defaults are
        environment variables of the Ansible user.

        :param prefix: ``external_openstack`` or ``cinder``.
        """
        # Keystone refuses a project beside an application credential.
        unused = _USER if self.application_credential_id is not None else {}
        used = _LOGIN.keys() - unused
        login = {_LOGIN[name]: opened(getattr(self, name)) for name in used}
        return {f"{prefix}_{end}": login.get(end) or "" for end in _LOGIN.values()}
