# SPDX-License-Identifier: Apache-2.0
"""What a cluster's profile stood for at instantiation, kept in its VNF instance (v1).

Tacker's v1 API keeps texts in the metadata, so it is the text of a JSON object.
"""

import json
from typing import Any

from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.request.profile_values import Expansion

KEY = "k8s_mgmt_profile"


def kept(vnf_instance: Any) -> Any:
    """What is kept; None if nothing is, and the text itself if it is no JSON."""
    text = (vnf_instance.vnf_metadata or {}).get(KEY)
    try:
        return None if text is None else json_text.parse(text)
    except (TypeError, ValueError):
        return text


def keep(vnf_instance: Any, expansion: Expansion | None) -> None:
    """Keep it for the cluster's life; None: keep nothing."""
    before = vnf_instance.vnf_metadata or {}
    # A new dict: Tacker does not notice a change inside the old one.
    after = {name: value for name, value in before.items() if name != KEY}
    if expansion:
        after[KEY] = json.dumps(expansion.kept(), sort_keys=True)
    if before != after:
        vnf_instance.vnf_metadata = after
        database.save(vnf_instance)
