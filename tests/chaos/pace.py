# SPDX-License-Identifier: Apache-2.0
"""How long things take in each kind of laboratory, and limits that fit."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos import catalogue


@dataclass(frozen=True)
class Pace:
    """Times of a laboratory, in seconds.

    :param usual: of a step, by which the length of a plan is known beforehand.
    :param limits: of the driver, so that a fault does not take longer than it has to.
        Each still covers what takes its time in a healthy cluster of the laboratory.
    :param silence: without progress, after which the guide's remedies for what was
        interrupted are tried.
    :param long_silence: without progress, after which an operation is stuck.
    :param longest: after which it is stuck though it moves.
    :param notice: until a cluster has noticed that a node is off.
    :param patience: for what has to hold after an operation, before everything is
        compared again.
    :param looks: how often that is done; no time.
    :param pause: between two comparisons, for what comes back by itself.
    :param look: between two looks at all processes.
    """

    usual: float
    limits: Mapping[str, float]
    silence: float
    long_silence: float
    longest: float
    notice: float
    patience: float
    looks: int
    pause: float
    look: float


_QUICK = Pace(
    usual=40,
    limits={
        "connect_timeout": 5,
        "boot_timeout": 60,
        "login_timeout": 20,
        "playbook_idle_timeout": 60,
        "ready_timeout": 60,
        "api_timeout": 20,
    },
    silence=15,
    long_silence=150,
    longest=900,
    notice=20,
    patience=40,
    looks=2,
    pause=5,
    look=0.1,
)
_REAL = Pace(
    usual=130,
    limits={
        "connect_timeout": 10,
        "boot_timeout": 120,
        "playbook_idle_timeout": 600,
        "ready_timeout": 240,
        "api_timeout": 30,
    },
    # A task of a playbook takes longer than any of the stand-in for kubespray.
    silence=45,
    long_silence=700,
    longest=3600,
    notice=70,
    # A node whose disk was full takes no pods for five minutes.
    patience=70,
    looks=6,
    pause=15,
    # There are many more processes.
    look=1.0,
)
PACES: Mapping[str, Pace] = {catalogue.QUICK: _QUICK, catalogue.REAL: _REAL}
