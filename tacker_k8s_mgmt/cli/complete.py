# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt complete``: the script with which a shell completes commands."""

import argparse
from importlib.metadata import EntryPoint
from typing import Any

import cliff.complete
from stevedore.extension import Extension, ExtensionManager

from tacker_k8s_mgmt.cli.base import Reporting

_NOWHERE = EntryPoint("", "", "")
_ZSH = """#compdef {name}
{function}() {{
  local -A following=(
{following}
  )
  local typed='' word
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    [[ $word != -* ]] || break
    word="${{typed:+${{typed}}_}}$word"
    (( ${{+following[$word]}} )) || break
    typed=$word
  done
  if [[ ${{following[$typed]}} == -* && $PREFIX != -* ]]; then
    _files
  else
    compadd -- ${{=following[$typed]}}
  fi
}}
compdef {function} {name}
"""


class Zsh(cliff.complete.CompleteShellBase):
    """The script for zsh."""

    def get_header(self) -> str:
        """Return nothing: :meth:`write` makes all of it."""
        return ""

    get_trailer = get_header

    def write(self, cmdo: str, data: list[tuple[str, str]]) -> None:
        """Write it.

        :param cmdo: the first words of commands.
        :param data: the words or options that follow others, which underscores join.
        """
        lines = [f"    '{before}' '{words}'" for before, words in (("", cmdo), *data)]
        function = f"_{self.escaped_name}"
        script = _ZSH.format(
            name=self.name, function=function, following="\n".join(lines)
        )
        self.output.write(script)


class Complete(cliff.complete.CompleteCommand, Reporting):
    """Print the script with which a shell completes commands and their options."""

    def __init__(
        self,
        app: Any,
        app_args: argparse.Namespace,
        cmd_name: str | None = None,
    ) -> None:
        super().__init__(app, app_args, cmd_name)
        shells = (("bash", cliff.complete.CompleteBash), ("zsh", Zsh))
        self._formatters = ExtensionManager.make_test_instance(
            [Extension(name, _NOWHERE, shell, None) for name, shell in shells]
        )

    def get_epilog(self) -> str:
        """Return nothing: a search for the command's package takes seconds."""
        return ""
