# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab host`` as words for the cloud inside the lab."""

import argparse

import pytest

from lab.cloud import cli


class FakeLab:
    def execute(self, argv):
        self.argv = argv


def words_inside(*line):
    parser = argparse.ArgumentParser()
    cli.add_parser(parser.add_subparsers(dest="verb"))
    args = parser.parse_args(["host", *line])
    lab = FakeLab()
    args.run(lab, args)
    return lab.argv[lab.argv.index("lab.cloud") + 1 :]


@pytest.mark.parametrize(
    ("line", "inside"),
    [
        pytest.param(["list"], ["list"], id="list"),
        pytest.param(["list", "--json"], ["list", "--json"], id="list-json"),
        pytest.param(["cut", "worker"], ["cut", "worker"], id="cut"),
        pytest.param(
            ["restore", "10.99.0.10"], ["restore", "10.99.0.10"], id="restore"
        ),
        pytest.param(["kill", "worker"], ["kill", "worker"], id="kill"),
        pytest.param(
            ["delete-server", "worker"], ["delete-server", "worker"], id="delete-server"
        ),
        pytest.param(
            ["add-address", "worker", "10.10.0.100"],
            ["add-address", "worker", "10.10.0.100"],
            id="add-address",
        ),
        pytest.param(["kubespray", "HEAD"], ["kubespray", "HEAD"], id="kubespray"),
        pytest.param(["refuse", "*LB*"], ["refuse", "*LB*"], id="refuse"),
        pytest.param(
            ["exec", "worker", "--", "ls", "-l", "--", "x"],
            ["exec", "worker", "--", "ls", "-l", "--", "x"],
            id="exec-after-separator",
        ),
        pytest.param(
            ["exec", "worker", "ls", "-l"],
            ["exec", "worker", "--", "ls", "-l"],
            id="exec",
        ),
        pytest.param(["exec", "worker"], ["exec", "worker", "--", "bash"], id="shell"),
    ],
)
def test_a_command_reaches_the_cloud_unchanged(line, inside):
    assert words_inside(*line) == inside


def test_a_verb_that_needs_a_host_asks_for_it(capsys):
    with pytest.raises(SystemExit):
        words_inside("cut")
    assert "host" in capsys.readouterr().err
