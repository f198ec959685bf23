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
        ("list", "list"),
        ("list --json", "list --json"),
        ("cut worker", "cut worker"),
        ("restore 10.99.0.10", "restore 10.99.0.10"),
        ("kill worker", "kill worker"),
        ("delete-server worker", "delete-server worker"),
        ("add-address worker 10.10.0.100", "add-address worker 10.10.0.100"),
        ("kubespray HEAD", "kubespray HEAD"),
        ("refuse *LB*", "refuse *LB*"),
        ("exec worker -- ls -l -- x", "exec worker -- ls -l -- x"),
        ("exec worker ls -l", "exec worker -- ls -l"),
        ("exec worker", "exec worker -- bash"),
    ],
)
def test_a_command_reaches_the_cloud_unchanged(line, inside):
    assert words_inside(*line.split()) == inside.split()


def test_a_verb_that_needs_a_host_asks_for_it(capsys):
    with pytest.raises(SystemExit):
        words_inside("cut")
    assert "host" in capsys.readouterr().err
