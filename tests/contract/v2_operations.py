# SPDX-License-Identifier: Apache-2.0
"""Operations of Tacker's v2 API on fakes of the site."""

import json

from tacker.sol_refactored.api import validator
from tacker.sol_refactored.api.schemas import vnflcm_v2

from tests.contract import v2_world
from tests.helpers.requests import additional_params

FIVE, FIFTY_FIVE = "worker-10-10-0-5", "worker-10-10-0-55"
MASTER, EIGHT = "control-plane-10-10-0-4", "worker-10-10-0-8"
SECRETS = ("n0de-secret", "serv3r-secret", "b4lancer-secret", "v1m-secret")
#: A later request repeats what is not kept.
REPEATED = additional_params()


def instantiate(tacker, vim="vim1", **changes):
    request = {
        "flavourId": "simple",
        "instantiationLevelId": "instantiation_level_1",
        "vimConnectionInfo": {vim: v2_world.VIM},
        "additionalParams": additional_params(**changes),
    }
    tacker.operate("INSTANTIATE", request)


def scale(tacker, kind, params=REPEATED):
    tacker.operate(
        "SCALE",
        {
            "type": kind,
            "aspectId": "worker_instance",
            "numberOfSteps": 1,
            "additionalParams": params,
        },
    )


def heal(tacker, *vnfcs, params=REPEATED, **more):
    request = {"additionalParams": {**params, **more}}
    if vnfcs:
        request["vnfcInstanceId"] = list(vnfcs)
    tacker.operate("HEAL", request)


def terminate(tacker, kind="GRACEFUL", params=REPEATED):
    tacker.operate("TERMINATE", {"terminationType": kind, "additionalParams": params})


def modify(tacker, **metadata):
    """As the controller does: its schema first."""
    body = {"metadata": metadata}
    request = vnflcm_v2.VnfInfoModificationRequest_V200
    validator.SolSchemaValidator(request).validate(body)
    tacker.operate("MODIFY_INFO", body)


def reference(tmp_path, name, secret):
    """A secret in a file on the conductor."""
    path = tmp_path / "secrets" / name
    path.write_text(f"{secret}\n")
    path.chmod(0o600)
    return {"file": str(path)}


def referring(tmp_path):
    """Parameters whose secrets are all in files on the conductor."""
    secrets = {
        "ansible": ("password", "serv3r-secret"),
        "master_node": ("password", "n0de-secret"),
        "worker_node": ("password", "n0de-secret"),
        "external_lb_param": ("ssh_password", "b4lancer-secret"),
    }
    given = additional_params()["k8s_cluster_installation_param"]
    for name, (attribute, secret) in secrets.items():
        given[name] |= {attribute: reference(tmp_path, name, secret)}
    return given


def no_secrets(tacker):
    """Nothing that others see has a secret in it."""
    seen = json.dumps([tacker.instance.get("metadata"), tacker.data])
    files = [path.read_text() for path in tacker.state.rglob("*") if path.is_file()]
    for secret in (*SECRETS, "t0ken"):
        assert secret not in seen
        assert all(secret not in text for text in files)
