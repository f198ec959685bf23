# SPDX-License-Identifier: Apache-2.0
"""Messages as Alertmanager's webhook receiver gets them (format version 4)."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def heal(vnf_id: str, *vnfcs: str, **more: str) -> dict[str, Any]:
    """That these VNFCs are to be healed.

    :param more: labels besides those that Tacker reads.
    """
    labels = {"function_type": "auto_heal", "vnf_instance_id": vnf_id, **more}
    return message({**labels, "vnfc_info_id": vnfc} for vnfc in vnfcs)


def scale(vnf_id: str, direction: str = "OUT") -> dict[str, Any]:
    """That the workers are to be scaled by one step."""
    labels = {
        "function_type": "auto_scale",
        "vnf_instance_id": vnf_id,
        "auto_scale_type": f"SCALE_{direction}",
        "aspect_id": "worker_instance",
    }
    return message([labels])


def message(each: Any, status: str = "firing") -> dict[str, Any]:
    """A message about one group of alerts.

    :param each: the labels of each alert, without ``receiver_type``.
    """
    alerts = [_alert({"receiver_type": "tacker", **labels}, status) for labels in each]
    common = {"receiver_type": "tacker"}
    return {
        "version": "4",
        "groupKey": '{}/{receiver_type="tacker"}:{}',
        "truncatedAlerts": 0,
        "status": status,
        "receiver": "tacker",
        "groupLabels": {},
        "commonLabels": common,
        "commonAnnotations": {},
        "externalURL": "http://alertmanager:9093",
        "alerts": alerts,
    }


def _alert(labels: Mapping[str, str], status: str) -> dict[str, Any]:
    known = json.dumps(labels, sort_keys=True).encode()
    return {
        "status": status,
        "labels": dict(labels),
        "annotations": {"summary": "an alert of the tests"},
        "startsAt": "2026-01-02T03:04:05.678Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://prometheus:9090/graph",
        "fingerprint": hashlib.sha256(known).hexdigest()[:16],
    }
