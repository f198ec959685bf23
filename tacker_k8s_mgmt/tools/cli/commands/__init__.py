# SPDX-License-Identifier: Apache-2.0
"""The commands: a module for each group, a class for each command.

The group ``cluster`` is in the module of its name (its verbs for Tacker's API are in
one beside it); its class ``ClusterCheck`` is the command ``tacker-k8s-mgmt cluster
check``. :data:`COMMANDS` lists it, beside its line in ``pyproject.toml`` for
``openstack vnf k8s cluster check`` and the pages of the documentation. What several
groups share is a module of :mod:`tacker_k8s_mgmt.tools.cli`, never one of here.

A class derives from one of :mod:`tacker_k8s_mgmt.tools.cli.base`:

``Command``
    does something; ``take_action(arguments)`` returns the exit code, or None for 0.
``Lister``
    lists things; ``take_action`` returns the names of the columns and the rows, and
    cliff makes a table, JSON, YAML, CSV or plain values of them.
``Report``
    has a text for people and a document for programs; ``find`` returns an ``Outcome``
    with both and the exit code.

Its docstring is the help (the first line, without its full stop, in lists of commands),
``examples`` are command lines that the help and a test show, and ``exit_codes`` says
what they mean where the usual ones do not fit. ``get_parser`` adds options::

    class ThingShow(Report):
        \"\"\"Show a thing.

        More about it.
        \"\"\"

        examples = ("tacker-k8s-mgmt thing show one",)

        def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
            parser = super().get_parser(prog_name)
            parser.add_argument("name", metavar="NAME")
            return parser

        def find(self, parsed_args: argparse.Namespace) -> Outcome:
            thing = find(parsed_args.name)
            return Outcome({"name": thing.name}, lambda: common.show(thing.name))

Errors are exceptions: ``UsageError`` and unreadable input end with exit code 2, the
errors of :mod:`tacker_k8s_mgmt.errors` and ``OSError`` with 1; their texts are printed.
"""

import re

#: Of ``cluster``: what changes one, through Tacker.
_VERBS = (
    *("fail", "heal", "label", "maintenance", "retry", "rollback", "scale"),
    *("taint", "upgrade"),
)
_GROUPS = {
    "app": ("list", "show"),
    "cluster": (
        *("access", "check", "kubeconfig", "labels", "list", "plan", "show"),
        *_VERBS,
    ),
    "csar": ("build", "check", "cnf"),
    "inventory": ("preview",),
    "params": ("check",),
    "preflight": ("",),
    "request": ("init",),
    "runs": ("follow", "list", "metrics", "pages", "show"),
    "tenant": ("access", "list"),
}


def class_name(command: str) -> str:
    """That of a command: ``ClusterCheck``, or ``ThingDoAll`` of ``thing do-all``."""
    return "".join(word.title() for word in re.split("[ -]", command))


#: The module of a command that is not in the one of its group.
_BESIDE = {
    **dict.fromkeys(("cluster access", "cluster kubeconfig"), "cluster_access"),
    "cluster plan": "cluster_plan",
    **dict.fromkeys((f"cluster {verb}" for verb in _VERBS), "cluster_verbs"),
}
#: Where the class of each command is, as an entry point says it. A command is imported
#: when it is used.
COMMANDS = {
    command: f"{__name__}.{_BESIDE.get(command, group)}:{class_name(command)}"
    for group, verbs in _GROUPS.items()
    for command in (f"{group} {verb}".strip() for verb in verbs)
}
