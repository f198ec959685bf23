# SPDX-License-Identifier: Apache-2.0
"""The structure ``cluster.authentication``: who may use the Kubernetes API."""

import base64
from operator import attrgetter
from typing import Annotated, Any

from tacker_k8s_mgmt.request.field_types import Flag
from tacker_k8s_mgmt.request.key_aliases import Structure
from tacker_k8s_mgmt.request.option_metadata import Becomes
from tacker_k8s_mgmt.request.option_types import (
    OptionalCertificate,
    OptionalText,
    Text,
    Url,
)

_OIDC_CA_FILE = "{{ kube_cert_dir }}/oidc-ca.pem"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


class Oidc(Structure):
    """Users come from an OpenID Connect provider."""

    issuer_url: Annotated[Url, Becomes("kube_oidc_url")]
    """URL of the provider; https."""
    client_id: Annotated[Text, Becomes("kube_oidc_client_id")]
    """Client that tokens are made for."""
    username_claim: Annotated[OptionalText, Becomes("kube_oidc_username_claim")] = None
    """Claim with the user's name. Default: sub."""
    username_prefix: Annotated[OptionalText, Becomes("kube_oidc_username_prefix")] = (
        None
    )
    """What is put before the user's name, such as oidc:."""
    groups_claim: Annotated[OptionalText, Becomes("kube_oidc_groups_claim")] = None
    """Claim with the user's groups."""
    groups_prefix: Annotated[OptionalText, Becomes("kube_oidc_groups_prefix")] = None
    """What is put before each group, such as oidc:."""
    ca_certificate: Annotated[
        OptionalCertificate,
        Becomes("kube_oidc_ca_file", value=lambda _: _OIDC_CA_FILE),
        Becomes("kube_oidc_ca_cert", value=_base64),
    ] = None
    """The provider's CA certificate, as PEM text."""


class Webhook(Structure):
    """Tokens are shown to a service, such as k8s-keystone-auth for Keystone's."""

    url: Annotated[Url, Becomes("kube_webhook_token_auth_url")]
    """URL of the service, such as https://192.0.2.7:8443/webhook."""
    ca_certificate: Annotated[
        OptionalCertificate, Becomes("kube_webhook_token_auth_ca_data", value=_base64)
    ] = None
    """The service's CA certificate, as PEM text."""
    skip_tls_verify: Flag = False
    """Do not verify the service's certificate. Default: false."""
    authorization: Annotated[
        Flag,
        Becomes("kube_webhook_authorization"),
        Becomes("authorization_modes", value=lambda _: ["Node", "RBAC", "Webhook"]),
        Becomes("kube_webhook_authorization_url", value=None),
        Becomes("kube_webhook_authorization_url_skip_tls_verify", value=None),
    ] = False
    """Ask the service, too, who may do what, after Kubernetes' own roles (RBAC). Its
    certificate has to be of a CA that the VMs' operating system knows: kubespray passes
    no other for this. Default: false."""

    def authorization_variables(self) -> dict[str, Any]:
        """The variables of authorization that depend on several options."""
        if not self.authorization:
            return {}
        prefix = "kube_webhook_authorization_url"
        return {prefix: self.url, f"{prefix}_skip_tls_verify": self.skip_tls_verify}


class Authentication(Structure):
    """Who may use the Kubernetes API, beside certificates and service accounts."""

    oidc: Annotated[Oidc | None, Becomes("kube_oidc_auth")] = None
    """OpenID Connect."""
    webhook: Annotated[
        Webhook | None,
        Becomes("kube_webhook_token_auth"),
        Becomes(
            "kube_webhook_token_auth_url_skip_tls_verify",
            value=attrgetter("skip_tls_verify"),
        ),
    ] = None
    """A token webhook, for example Keystone's."""
