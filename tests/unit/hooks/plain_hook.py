# SPDX-License-Identifier: Apache-2.0
"""A call of a hook without Tacker."""

import contextlib
from typing import Any

from tacker_k8s_mgmt.hooks.hook import Hook
from tests.helpers.requests import VNF, additional_params


class PlainHook(Hook):
    """A call of a hook that notes what is done."""

    vnf_name = occurrence = ""
    metadata: dict[str, Any] = {}
    vnfcs: dict[str, str] = {}

    def __init__(self, conf, name="scale_start", stored=None):
        super().__init__(name, VNF, conf, api="v0")
        self.stored = additional_params() if stored is None else stored
        self.done = []

    def parameters(self):
        self.done.append("read")
        return self.stored, None

    def kept_profile(self):
        return None

    def keep_profile(self, profile):
        pass

    def forget(self):
        self.done.append("forget")

    def package(self):
        raise AssertionError

    def resolver(self):
        return None

    def begin(self):
        self.done.append("begin")

    def scale(self):
        return None

    def healed_vdus(self):
        return ()

    @contextlib.contextmanager
    def site(self, request):  # type: ignore[override]
        self.done.append("open")
        yield "the site"
        self.done.append("close")
