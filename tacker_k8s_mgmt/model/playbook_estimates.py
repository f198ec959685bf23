# SPDX-License-Identifier: Apache-2.0
"""Estimates of the remaining time of a playbook run, from former runs of its kind.

The callback plugin on the Ansible server
(``remote/ansible/run_files/k8s_mgmt_events.py``) records the duration of each play of
successful runs and reports it with the first play. Without a former run there is no
estimate, because the number of tasks is not known beforehand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt.model import json_text

#: Weight of the former pace, as a part of a whole run, beside this run's own.
_INERTIA = 0.1
_NUMBERS = ("no", "one", "two", "three", "four", "five")


@dataclass(frozen=True)
class Former:
    """Former runs of the same playbook, kubespray release and number of hosts.

    :param runs: their number.
    :param plays: median duration of each play in seconds.
    """

    runs: int
    plays: tuple[float, ...]

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> "Former | None":
        """Parse the event ``former``; None if it is invalid."""
        runs, plays = event.get("runs"), event.get("plays")
        if not isinstance(plays, list) or not plays:
            return None
        try:
            count = int(json_text.number(runs))
            return cls(count, tuple(map(json_text.number, plays))) if count else None
        except ValueError:
            return None

    def left(self, play: int, elapsed: float, in_play: float) -> float | None:
        """The remaining seconds of a run at its present pace.

        :param play: the number of the present play, from 1.
        :param elapsed: seconds since the first play began.
        :param in_play: seconds since the present play began.
        :returns: None if former runs had no such play.
        """
        if not 1 <= play <= len(self.plays):
            return None
        inertia = _INERTIA * sum(self.plays)
        usual = self.plays[play - 1]
        passed = sum(self.plays[: play - 1]) + min(in_play, usual)
        pace = (elapsed + inertia) / (passed + inertia) if inertia else 1.0
        rest = max(usual * pace - in_play, 0)
        return rest + pace * sum(self.plays[play:])


def in_words(left: float, runs: int) -> str:
    """An estimate as text, with its basis.

    :param left: seconds.
    :param runs: number of former runs.
    """
    minutes = max(round(left / 60), 1)
    hours, rest = divmod(minutes, 60)
    if left < 50:
        duration = "less than a minute"
    elif not hours:
        duration = f"about {minutes} min"
    else:
        duration = f"about {hours} h {rest} min" if rest else f"about {hours} h"
    number = _NUMBERS[runs] if runs < len(_NUMBERS) else str(runs)
    return f"{duration} left ({number} former {'run' if runs == 1 else 'runs'})"
