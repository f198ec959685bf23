# SPDX-License-Identifier: Apache-2.0
"""``runs metrics``, and the metrics of ``cluster check``."""

import pytest

from tacker_k8s_mgmt.tools.cli import main
from tests.unit.tools.cli.journals import completed

COUNTED = (
    'tacker_k8s_mgmt_hook_runs_total{hook="instantiate_end",operation="instantiate",'
    'outcome="completed"} 1.0\n'
)


@pytest.fixture
def command(tmp_path):
    completed(tmp_path)
    return ["runs", "metrics", "--state-path", str(tmp_path)]


def test_they_are_printed(command, capsys):
    assert main(command) == 0
    assert COUNTED in capsys.readouterr().out


def test_they_are_written(command, tmp_path, capsys):
    assert main([*command, "--metrics-directory", str(tmp_path)]) == 0
    path = tmp_path / "tacker_k8s_mgmt.prom"
    assert capsys.readouterr().out == f"{path}\n"
    assert COUNTED in path.read_text()


def test_they_are_written_where_the_conductor_writes_them(tmp_path, capsys):
    path = tmp_path / "tacker.conf"
    path.write_text(
        f"[k8s_mgmt]\nstate_path = {tmp_path}\nmetrics_directory = {tmp_path}\n"
    )
    completed(tmp_path)
    command = ["runs", "metrics", "--config-file", str(path)]
    assert main([*command, "--print"]) == 0
    assert COUNTED in capsys.readouterr().out
    assert not (tmp_path / "tacker_k8s_mgmt.prom").exists()
    assert main(command) == 0
    assert COUNTED in (tmp_path / "tacker_k8s_mgmt.prom").read_text()


def test_a_directory_that_is_missing_is_one_line(command, tmp_path, capsys):
    assert main([*command, "--metrics-directory", str(tmp_path / "absent")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "No such file or directory" in line
