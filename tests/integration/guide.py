# SPDX-License-Identifier: Apache-2.0
"""The guides' commands in the lab: an operator's shell with the lab's own values."""

import json
import os
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab import client, settings
from tacker_k8s_mgmt.tools.cli import main
from tests.documents import account, blocks, running

#: What ssh asks for: the password of the user in the sample requests, and whether an
#: unknown host is the right one.
ANSWERS = """\
#!/bin/sh
case "$1" in *fingerprint*) echo yes ;; *) echo ubuntu ;; esac
"""
#: The lab's hosts reuse addresses, so they must not get into the user's own file.
SSH = """\
#!/bin/sh
exec /usr/bin/{name} -o UserKnownHostsFile={known_hosts} "$@"
"""
#: Tacker's configuration of a lab is in the home directory, on a site in /etc.
SUDO = """\
#!/bin/sh
exec /usr/bin/sudo HOME="$HOME" "$@"
"""
#: What a reader leaves out of a command for a cluster of Tacker's v1 API.
V2 = " --os-tacker-api-version 2"


class Guide:
    """Runs commands of the guides as they are printed.

    :param place: a directory of its own: what commands read and write is there.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        programs = place / "bin"
        programs.mkdir()
        texts = {"answers": ANSWERS, "sudo": SUDO} | {
            name: SSH.format(name=name, known_hosts=place / "known_hosts")
            for name in ("ssh", "scp")
        }
        for name, text in texts.items():
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        # One of the places where Tacker looks for its configuration.
        config = place / ".tacker" / "tacker.conf"
        config.parent.mkdir()
        config.symlink_to(client.state() / "etc" / "tacker.conf")
        self._environment = {
            **os.environ,
            "HOME": str(place),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "SSH_ASKPASS": str(programs / "answers"),
            "SSH_ASKPASS_REQUIRE": "force",
        }
        self._values = {
            running.STATE_PATH: str(settings.from_environment().journals),
            "ANSIBLE_SERVER": "10.99.0.5",
        }

    def builds(self, name: str, api: str = "v1") -> str:
        """Build a package that Tacker has not had; the id of its VNFD."""
        vnfd_id = str(uuid.uuid4())
        words = ["csar", "build", "simple", "--api", api, "--vnfd-id", vnfd_id]
        assert main([*words, "--force", "-o", str(self.place / name)]) == 0
        return vnfd_id

    def writes(self, name: str, content: Any) -> None:
        """Put a file of JSON where commands look for it."""
        (self.place / name).write_text(json.dumps(content))

    def does(
        self,
        scene: str,
        *,
        stdin: str = "",
        expect: int = 0,
        kubeconfig: str = "",
        api: str = "v1",
        **values: str,
    ) -> str:
        """What the commands of a scene print, one after the other.

        :param api: that of the VNF instance; for v1 they lose the option of v2, as the
            guides say.
        :param stdin: what they read.
        :param expect: the exit code of the last one.
        :param kubeconfig: the cluster that kubectl is set up for.
        :param values: the test's own, by placeholder.
        """
        known = {**self._environment, "KUBECONFIG": kubeconfig}
        program = self.says(scene, **values)
        if api == "v1":
            program = program.replace(V2, "")
        return running.run(program, self.place, known, stdin=stdin, expect=expect)

    def tells_database(self, words: str, **values: str) -> None:
        """Run the SQL of a guide in Tacker's database.

        :param words: of the block that is meant.
        :param values: the test's own, by placeholder.
        """
        (block,) = (statement for statement in blocks.code("sql") if words in statement)
        client.in_database("tacker", running.with_values(block, values))

    def says(self, scene: str, **values: str) -> str:
        """The commands of a scene as a program for bash."""
        every: Mapping[str, str] = {**self._values, **values}
        return running.script(account.matching(account.LAB[scene]), every)


def id_in(table: str) -> str:
    """The id in a table that the OpenStack client prints of one thing."""
    (found,) = re.findall(r"^\| (?:ID|id) +\| (\S+)", table, re.MULTILINE)
    return str(found)
