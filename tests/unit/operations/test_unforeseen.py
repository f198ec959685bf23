# SPDX-License-Identifier: Apache-2.0
"""An unforeseen error in the log: oslo.log adds what is being handled."""

import logging
import sys

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import run


class Handled(logging.Handler):
    """The exceptions that are being handled when something is logged."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts += [record.getMessage(), str(sys.exc_info()[1])]


@pytest.fixture
def handled():
    handler, logger = Handled(), logging.getLogger("tacker_k8s_mgmt")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_its_secrets_are_in_neither(handled):
    site = FakeSite()
    site.faults.add("run cluster")
    site.error = RuntimeError("refused n0de-secret")
    with pytest.raises(errors.StepFailed, match=r"refused \*\*\*"):
        run(Instantiate, site)
    assert any("RuntimeError: refused ***" in text for text in handled.texts)
    assert not any("n0de-secret" in text for text in handled.texts)
