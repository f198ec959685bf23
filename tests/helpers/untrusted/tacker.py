# SPDX-License-Identifier: Apache-2.0
"""Readers of what Tacker's API answers to commands."""

from collections.abc import Mapping

from tacker_k8s_mgmt.tools.tacker import records, scaling
from tacker_k8s_mgmt.tools.tacker.client import Answer
from tests.helpers.untrusted.fed import Fed, parsed

_ID = "9f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"
_LEVEL = {"aspectId": "worker_instance", "scaleLevel": 1}
_RESOURCE = {"id": _ID, "vduId": "w", "computeResource": {"resourceId": "s"}}
_INSTANCE = {
    "id": _ID,
    "vnfInstanceName": "one",
    "instantiatedVnfInfo": {
        "scaleStatus": [_LEVEL],
        "vnfcResourceInfo": [_RESOURCE],
        "vnfcInfo": [{"id": "w-s", "vnfcResourceInfoId": _ID}],
    },
}
_POLICIES = [
    {
        "aspects": {
            "type": "tosca.policies.nfv.ScalingAspects",
            "properties": {"aspects": {"a": {"step_deltas": ["d"]}}},
        }
    },
    {
        "deltas": {
            "type": "tosca.policies.nfv.VduScalingAspectDeltas",
            "properties": {
                "aspect": "a",
                "deltas": {"d": {"number_of_instances": 1}},
            },
            "targets": ["w"],
        }
    },
]
_VNFD = {
    "topology_template": {
        "substitution_mappings": {"properties": {"flavour_id": "simple"}},
        "policies": _POLICIES,
    }
}


def _document(content: str) -> None:
    document = Answer(200, {}, content.encode(errors="surrogatepass")).document()
    row = document if isinstance(document, dict) else {}
    for api in records.APIS:
        records.instance(api, row)
        records.occurrence(api, row)


def _vnfd(content: str) -> None:
    files = {"a.yaml": content.encode(errors="surrogatepass")}
    list(scaling._aspects(files, "simple"))


TACKER: Mapping[str, Fed] = {
    "a VNF instance of Tacker's API": parsed(
        _INSTANCE,
        _document,
        "tools.tacker.client.Answer.document",
        "tools.tacker.records._levels",
    ),
    "a VNFD of Tacker's API": parsed(_VNFD, _vnfd, "tools.tacker.scaling._aspects"),
}
