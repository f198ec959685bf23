# SPDX-License-Identifier: Apache-2.0
"""The file with which kubectl reaches a cluster, and whether it does."""

import base64
import http.client
import ssl

import yaml

from tacker_k8s_mgmt.cli.common import NotDone
from tacker_k8s_mgmt.model import urls
from tacker_k8s_mgmt.model.cluster import PersonAccess

_LIMIT = 30  # seconds for an answer of the API server


def text(cluster: str, person: str, url: str, access: PersonAccess) -> str:
    """The file.

    :param cluster: what it is called there.
    :param url: of the API, as a person reaches it.
    """
    authority = base64.b64encode(access.ca_certificate.encode()).decode()
    context = f"{person}@{cluster}"
    place = {"cluster": cluster, "user": person}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster,
                "cluster": {"server": url, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": person, "user": {"token": access.token.get_secret_value()}}],
        "contexts": [{"name": context, "context": place}],
        "current-context": context,
    }
    return yaml.safe_dump(config, sort_keys=False)


def verify(url: str, access: PersonAccess) -> None:
    """Check that the API server at this URL is the cluster's, and takes the token.

    :raises NotDone: it is not, or cannot be reached from here.
    """
    place = urls.parts(url)
    trust = ssl.create_default_context(cadata=access.ca_certificate)
    connection = http.client.HTTPSConnection(
        str(place.hostname), place.port, timeout=_LIMIT, context=trust
    )
    headers = {"Authorization": f"Bearer {access.token.get_secret_value()}"}
    try:
        # Any authenticated user may see which APIs there are, and nobody else.
        connection.request("GET", "/api", headers=headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise NotDone(f"The API at {url} cannot be used: {error}") from error
    finally:
        connection.close()
    if status != http.client.OK:
        raise NotDone(f"The API at {url} does not take the new token: status {status}")
