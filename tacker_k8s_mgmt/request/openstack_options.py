"""OpenStack as the cluster itself uses it: volumes, load balancers, node addresses."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import Field, SecretStr

from tacker_k8s_mgmt.request import field_types, option_types
from tacker_k8s_mgmt.request.key_aliases import Structure

# kubespray deploys the driver without a class unless persistent_volumes_enabled is set,
# and none of its own classes is the default. It also gives its class the availability
# zone "nova", which not every site has: without, Cinder takes the site's default zone.
# The class takes parameters, so there is one that has no other effect than the driver's
# own default.
_STORAGE_CLASS: Mapping[str, Any] = MappingProxyType(
    {
        "persistent_volumes_enabled": True,
        "storage_classes": [
            {
                "name": "cinder-csi",
                "is_default": True,
                "parameters": {"csi.storage.k8s.io/fstype": "ext4"},
            }
        ],
    }
)


class OpenStack(Structure):
    """The OpenStack below the cluster, and the login that the cluster has there.

    An application credential is the better login: it can be taken back alone. kubespray
    wants its id, its name and its secret.
    """

    auth_url: option_types.Url = Field(
        description="Keystone's URL, as the nodes reach it: https://.../v3."
    )
    region: option_types.Text = Field(description="Name of the region.")
    application_credential_id: option_types.OptionalText = Field(
        default=None, description="Id of an application credential."
    )
    application_credential_name: option_types.OptionalText = Field(
        default=None, description="Name of that application credential."
    )
    application_credential_secret: option_types.OptionalSecret = Field(
        default=None, description="Secret of that application credential."
    )
    username: option_types.OptionalText = Field(
        default=None, description="User name, where there is no application credential."
    )
    password: option_types.OptionalSecret = Field(
        default=None, description="Password of that user."
    )
    project_id: option_types.OptionalText = Field(
        default=None, description="Project of that user; this or project_name."
    )
    project_name: option_types.OptionalText = Field(
        default=None, description="Project of that user; this or project_id."
    )
    domain_id: option_types.OptionalText = Field(
        default=None, description="Domain of that user; this or domain_name."
    )
    domain_name: option_types.OptionalText = Field(
        default=None, description="Domain of that user; this or domain_id."
    )
    ca_file: option_types.OptionalFile = Field(
        default=None,
        description="Absolute path of a file with the CA certificate of OpenStack's "
        "API: on the Ansible server for Cinder's driver, and at the same place on the "
        "first control plane for the cloud controller, as kubespray reads it.",
    )
    cloud_controller: field_types.Flag = Field(
        default=False,
        description="Run OpenStack's cloud controller: Services of type LoadBalancer, "
        "and nodes with their zones and addresses. Default: false.",
    )
    load_balancer_subnet_id: option_types.OptionalText = Field(
        default=None,
        description="Subnet of those Services' addresses (cloud controller).",
    )
    load_balancer_floating_network_id: option_types.OptionalText = Field(
        default=None,
        description="Network of those Services' floating IPs (cloud controller).",
    )

    def secrets(self) -> list[SecretStr | None]:
        """The secrets in it."""
        return [self.password, self.application_credential_secret]

    def variables(self, *, cinder: bool) -> dict[str, Any]:
        """Variables of the cloud controller and of Cinder's driver.

        What is not given is said to be empty: kubespray's defaults are environment
        variables of whoever runs it.

        :param cinder: whether Cinder's driver is asked for.
        """
        built: dict[str, Any] = {}
        if cinder:
            built |= {"cinder_csi_enabled": True, **_STORAGE_CLASS}
            built |= self._login("cinder")
        if self.cloud_controller:
            built |= {
                "cloud_provider": "external",
                "external_cloud_provider": "openstack",
                **self._login("external_openstack"),
            }
            for name, value in (
                ("subnet_id", self.load_balancer_subnet_id),
                ("floating_network_id", self.load_balancer_floating_network_id),
            ):
                built |= {f"external_openstack_lbaas_{name}": value} if value else {}
        return built

    def _login(self, prefix: str) -> dict[str, str]:
        by_credential = self.application_credential_id is not None
        login = {
            "auth_url": self.auth_url,
            "region": self.region,
            "application_credential_id": self.application_credential_id,
            "application_credential_name": self.application_credential_name,
            "application_credential_secret": self.application_credential_secret,
            # Beside an application credential, a project would be refused by Keystone.
            "username": None if by_credential else self.username,
            "password": None if by_credential else self.password,
            "tenant_id": None if by_credential else self.project_id,
            "tenant_name": None if by_credential else self.project_name,
            "domain_id": None if by_credential else self.domain_id,
            "domain_name": None if by_credential else self.domain_name,
            "cacert": self.ca_file,
        }
        return {f"{prefix}_{name}": _plain(value) for name, value in login.items()}


def _plain(value: str | SecretStr | None) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return value or ""
