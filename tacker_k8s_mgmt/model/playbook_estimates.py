"""How much longer a playbook run takes, judged by former runs of the same kind.

The callback plugin on the Ansible server
(``remote/ansible/run_files/k8s_mgmt_events.py``) keeps how long each play took in runs
that went well, and reports it with the first play. Without a former run there is no
estimate: how many tasks kubespray has shows only while they run.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: How much of a whole run the former pace counts beside what is seen of this one.
_INERTIA = 0.1
_NUMBERS = ("no", "one", "two", "three", "four", "five")


@dataclass(frozen=True)
class Former:
    """Former runs of the same playbook, kubespray release and number of hosts.

    :param runs: how many.
    :param plays: seconds that each play took, the median of these runs.
    """

    runs: int
    plays: tuple[float, ...]

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> "Former | None":
        """What the event ``former`` reports; None of one that cannot be understood."""
        runs, plays = event.get("runs"), event.get("plays")
        if not isinstance(runs, int) or runs < 1 or not isinstance(plays, Sequence):
            return None
        if not plays or not all(map(_is_duration, plays)):
            return None
        return cls(runs, tuple(map(float, plays)))

    def left(self, play: int, elapsed: float, in_play: float) -> float | None:
        """Seconds that a run still takes, if it goes on as it began.

        :param play: the number of the play that it is in, from 1.
        :param elapsed: seconds since its first play began.
        :param in_play: seconds since this play began.
        :returns: None where former runs had no such play.
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
    """An estimate as people read it, with what it rests on.

    :param left: seconds.
    :param runs: number of former runs.
    """
    minutes = max(round(left / 60), 1)
    hours, rest = divmod(minutes, 60)
    if left < 50:
        told = "less than a minute"
    elif not hours:
        told = f"about {minutes} min"
    else:
        told = f"about {hours} h {rest} min" if rest else f"about {hours} h"
    number = _NUMBERS[runs] if runs < len(_NUMBERS) else str(runs)
    return f"{told} left ({number} former {'run' if runs == 1 else 'runs'})"


def _is_duration(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0
