# SPDX-License-Identifier: Apache-2.0
"""VIMs in Tacker's registry, without its database."""

import copy
import uuid

from pydantic import SecretStr
from tacker.common import utils
from tacker.extensions import nfvo

from tacker_k8s_mgmt.model.vim import VimSpec


class FakePlugin:
    """Tacker's NFVO plugin as far as VIMs go."""

    def __init__(self):
        self.vims = {}
        self.used = set()

    def get_vims(self, context):
        return list(self.vims.values())

    def get_vim(self, context, vim_id, mask_password=True):
        return copy.deepcopy(self.vims[vim_id])

    def create_vim(self, context, vim):
        body = {**vim["vim"], "id": str(uuid.uuid4())}
        self.vims[body["id"]] = body
        return body

    def update_vim(self, context, vim_id, vim):
        # As NfvoPlugin._get_vim does.
        self.is_vim_still_in_use(context, vim_id)
        utils.deep_update(self.vims[vim_id], vim["vim"])

    def delete_vim(self, context, vim_id):
        if vim_id in self.used:
            raise nfvo.VimInUseException(vim_id=vim_id)
        del self.vims[vim_id]

    def is_vim_still_in_use(self, context, vim_id):
        if vim_id in self.used:
            raise nfvo.VimInUseException(vim_id=vim_id)


def spec(name="cluster"):
    return VimSpec(name, "https://192.0.2.9:6443", SecretStr("t0ken"), "CA")
