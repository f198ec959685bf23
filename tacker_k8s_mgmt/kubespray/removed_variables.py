# SPDX-License-Identifier: Apache-2.0
"""Variables of a request that kubespray's releases have removed or renamed.

kubespray silently ignores removed variables, except for the few that it lists.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tacker_k8s_mgmt.kubespray.releases import RELEASES
from tacker_k8s_mgmt.model.versions import Minor, tag


@dataclass(frozen=True)
class Removal:
    """The removal of a variable.

    :param since: the first minor release without it.
    :param instead: what to do now, as the end of a sentence; "" for nothing.
    """

    since: Minor
    instead: str = ""


_ALL = {
    name: Removal(since, instead)
    for since, release in RELEASES.items()
    for name, instead in release.removed.items()
}
VARIABLES: Mapping[str, Removal] = {
    name: gone for name, gone in _ALL.items() if not name.endswith("*")
}
#: The removal of all variables of a feature, by the beginning of their names.
FEATURES: Mapping[str, Removal] = {
    name.removesuffix("*"): gone for name, gone in _ALL.items() if name.endswith("*")
}


def removal(name: str) -> Removal | None:
    """The removal of a variable; None if no known release has removed it."""
    features = (gone for start, gone in FEATURES.items() if name.startswith(start))
    return VARIABLES.get(name) or next(features, None)


def findings(
    variables: Iterable[str], version: str, at: Minor, stated: Iterable[str]
) -> Iterator[str]:
    """One sentence for each of a user's variables that a release does not have.

    :param version: kubespray's version, for the sentences.
    :param at: its minor release.
    :param stated: the removed variables that the checkout itself lists.
    """
    own = frozenset(stated)
    for name in variables:
        gone = removal(name)
        if gone and at >= gone.since:
            since = "" if at == gone.since else f" since {tag(gone.since)}"
            instead = f"; {gone.instead}" if gone.instead else ""
            yield (
                f"kubespray_vars.{name}: kubespray {version} has no such variable"
                f"{since}{instead}"
            )
        elif name in own:
            yield f"kubespray_vars.{name}: kubespray {version} has removed it"
