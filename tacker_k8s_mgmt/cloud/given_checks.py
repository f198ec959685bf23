# SPDX-License-Identifier: Apache-2.0
"""Whether a package has what the options of ``request init`` name."""

from collections.abc import Collection, Iterable, Iterator

from tacker_k8s_mgmt.cloud import layout
from tacker_k8s_mgmt.cloud.demand import Package, vdus
from tacker_k8s_mgmt.cloud.questions import Given
from tacker_k8s_mgmt.csar import hot_values

#: The samples' parameter for a key pair.
KEY_NAME = "key_name"


def problems(package: Package, given: Given) -> Iterator[str]:
    """Names that nothing would read, and values that Heat would refuse."""
    parameters = package.base.top.parameters
    machines = [vdu.name for vdu in vdus(package)]
    points = layout.external_points(package)
    level = [given.values["level"]] if "level" in given.values else []
    every: tuple[tuple[str, str, Iterable[str], Collection[str]], ...] = (
        ("level", "instantiation level", level, package.flavour.levels),
        ("network", "external connection point", given.networks, points),
        ("image", "VDU", given.images, machines),
        ("flavor", "VDU", given.flavors, machines),
        ("hot", "parameter of the Base HOT", given.hot, parameters),
    )
    for option, kind, names, known in every:
        if unknown := sorted(set(names) - {"", *known}):
            listed = ", ".join(sorted(known)) or "none"
            yield (
                f"--{option}: there is no {kind} {', '.join(unknown)} (there are: "
                f"{listed})"
            )
    values = dict(given.hot)
    if "key-name" in given.values:
        values.setdefault(KEY_NAME, given.values["key-name"])
    for name in sorted(values.keys() & parameters.keys()):
        for why in hot_values.problems(parameters[name], values[name]):
            yield f"--hot {name}: {why}"
