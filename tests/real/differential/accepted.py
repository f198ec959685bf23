# SPDX-License-Identifier: Apache-2.0
"""Where the emulator differs on purpose. See doc/source/lab.rst."""

from tests.real.differential.compare import Accepted

_MANAGERS = "field managers are kept of server-side apply only, and never in conflict"
_VALUE = "the words do not quote the template that was sent"
_ETCD = "without etcd, requests end after 8 s with 503, not at the client's limit"

ACCEPTED = (
    Accepted("*", "*.metadata.#", _MANAGERS, frozenset({"managedFields"})),
    Accepted("patch: apply, another manager's field", "*", _MANAGERS),
    Accepted(
        "nodes: an object",
        "*.metadata.#",
        f"{_MANAGERS}; the annotation is a hint to kubelets",
        frozenset({"managedFields", "annotations"}),
    ),
    Accepted("job: its pods cannot be changed", "*.message", _VALUE),
    Accepted("job: its pods cannot be changed", "*.details.causes", _VALUE),
    Accepted(
        "discovery: /apis",
        "*.groups.*.name",
        "groups of which the laboratory has no object are not served",
    ),
    Accepted(
        "400: a body that is no JSON",
        "*.message",
        "the words are those of Python's parser, not of Go's",
    ),
    Accepted(
        "patch: a kind that there is not",
        "*.details",
        "a real server sends empty details of this refusal only",
    ),
    Accepted(
        "list: in pages",
        "*",
        "lists come in one page: no laboratory has 500 objects of a kind",
    ),
    Accepted(
        "table: events",
        "*.columnDefinitions.*.name",
        "events are shown as other objects are, with their names first",
    ),
    Accepted(
        "namespaces: wait for its end",
        "stdout",
        "the namespace is gone before kubectl waits, not 5 s later",
        is_of_time=True,
    ),
    Accepted("no etcd: reports", "nodes*", _ETCD),
)
