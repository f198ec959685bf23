# SPDX-License-Identifier: Apache-2.0
"""How far the clocks of VMs may differ from that of the conductor."""

from collections.abc import Mapping

#: Seconds; more is shown and logged.
NOTED = 5.0
HINT = (
    "Have chrony or another NTP client set the clocks of these VMs or, if it is the "
    "one that is wrong, that of the conductor's host."
)


def text(ahead: float) -> str:
    """A difference as text.

    :param ahead: seconds; negative if the clock is behind.
    """
    return f"{abs(ahead):.1f} s {'ahead' if ahead > 0 else 'behind'}"


def listed(ahead: Mapping[str, float], limit: float) -> str:
    """The differences of more than *limit* seconds, by name; "" without any."""
    far = {name: ahead[name] for name in sorted(ahead) if abs(ahead[name]) > limit}
    return ", ".join(f"{name} ({text(seconds)})" for name, seconds in far.items())
