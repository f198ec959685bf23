# SPDX-License-Identifier: Apache-2.0
"""Sentences for pydantic's errors about a request."""

from typing import Annotated
from urllib.parse import urlsplit

import pytest
from pydantic import AfterValidator, ValidationError

from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.request import structure

SECRET = "hunter2hunter2"


def _raises(value):
    raise ValueError(f"{value} is not known here")


@pytest.mark.parametrize(
    ("check", "value"),
    [
        # The error of a library quotes the value, as Python's own does here.
        (urlsplit, f"https://u:{SECRET}@h\u2100st/"),
        (_raises, SECRET),
    ],
)
def test_no_error_of_another_module_is_repeated(check, value):
    with pytest.raises(ValidationError, match=SECRET):
        _model(check)(place=value)
    assert _sentence(check, value) == "place: is not valid"


def test_an_error_of_the_drivers_own_says_what_is_right():
    assert _sentence(network_plugins.address, SECRET) == "place: must be an IP address"


def _model(check):
    class Model(structure.Structure):
        place: Annotated[str, AfterValidator(check)]

    return Model


def _sentence(check, value):
    _, mistakes = structure.build(_model(check), {"place": value})
    (named,) = structure.WrittenRequest({}).named(mistakes)
    return str(named)
