# SPDX-License-Identifier: Apache-2.0
"""The commands: a module and a class each, found by their names.

The module ``cluster_check`` has the class ``ClusterCheck``, which is the command
``tacker-k8s-mgmt cluster check``. Nothing else lists it but its line in
``pyproject.toml`` for ``openstack vnf k8s cluster check``, and the pages of the
documentation. What several commands share is a module of :mod:`tacker_k8s_mgmt.tools.cli`,
never one of here.

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


def target(module: str) -> str:
    """Where the class of a command is, as an entry point says it.

    :param module: the command's.
    """
    name = "".join(word.capitalize() for word in module.split("_"))
    return f"{__name__}.{module}:{name}"
