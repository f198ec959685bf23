# SPDX-License-Identifier: Apache-2.0
"""What to send to Tacker when a hook of a CNF has failed, by API and hook."""

from collections.abc import Mapping
from types import MappingProxyType

from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.hints import Advice
from tacker_k8s_mgmt.request.cnf_exposure import ATTRIBUTE

_REFUSED = (
    "Send `fail` for this operation, then a PATCH with a corrected "
    f"metadata.{ATTRIBUTE}."
)
_LATER = Advice(
    "`retry` goes on from here; after `fail`, the next heal or modification of the CNF "
    "does.",
    refused=_REFUSED,
)
_ROLLBACK = Advice("Another `rollback` goes on from here.")
_BOTH = {
    "instantiate_start": Advice(
        hints.NO_VM_YET.failed, refused=hints.UNCHANGED_SEND_ROLLBACK
    ),
    "instantiate_end": Advice(
        "`retry` goes on from here, `rollback` removes the CNF.",
        refused="Send `rollback` for this operation, which removes the CNF, then a "
        "corrected request.",
    ),
    "instantiate_rollback_start": _ROLLBACK,
    "terminate_start": Advice(
        "`retry` goes on from here; after `fail`, a FORCEFUL request goes on without."
    ),
    # Unlike that of a cluster, a retry in the v1 API calls it again (_scale_vnf_post).
    "scale_end": _LATER,
    "heal_end": _LATER,
}
#: A modification has neither a retry nor a rollback.
V1: Mapping[str, Advice] = MappingProxyType(
    {
        **_BOTH,
        "modify_information_start": Advice(
            "Send `fail` for this operation; when that is mended, or with a corrected "
            "request, modify the CNF again.",
            refused=hints.UNCHANGED_SEND_FAIL,
        ),
        "modify_information_end": Advice(
            "Tacker has stored what the request wants. Send `fail` for this operation; "
            "the next heal or modification of the CNF goes on.",
            refused=_REFUSED,
        ),
    }
)
#: What a modification wants is stored when it has ended well.
V2: Mapping[str, Advice] = MappingProxyType(
    {
        **_BOTH,
        "scale_rollback_end": _ROLLBACK,
        "modify_information_start": Advice(
            hints.CHECK.failed, refused=hints.UNCHANGED_SEND_FAIL
        ),
        "modify_information_end": Advice(
            "`retry` goes on from here; `rollback` gives the CNF its former exposures.",
            refused="Send `rollback` for this operation, which gives the CNF its "
            "former exposures, then a corrected request.",
        ),
        "modify_information_rollback_end": _ROLLBACK,
        "change_current_package_end": _LATER,
        "change_current_package_rollback_end": _ROLLBACK,
    }
)
