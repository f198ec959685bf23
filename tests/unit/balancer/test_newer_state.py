# SPDX-License-Identifier: Apache-2.0
"""A state file that a newer script has written."""

import pytest

from tests.unit.balancer.sandbox import INSTALL, Sandbox

FOREIGN = ("frob 1  2\\n", "restricted web fd00::/8 10.0.0.0/8", "", "# a remark")
#: Further fields of a known line, by the line's beginning.
FURTHER = {
    "api-port 6443": "tls",
    "control-plane control-plane-10-10-0-5 10.10.0.5 6443": "weight=5",
    "worker worker5 10.10.0.15": "weight=7 zone=b",
    "service web 80 30080 30080": "proxy-v2",
}


@pytest.fixture
def newer(serving):
    """The same load balancer, with lines and fields of a newer script."""
    text = serving.state.read_text()
    for line, fields in FURTHER.items():
        assert f"{line}\n" in text
        text = text.replace(f"{line}\n", f"{line} {fields}\n")
    header, rest = text.split("\n", 1)
    # Without a newline at its end.
    serving.state.write_text(
        "\n".join([header, *FOREIGN[:1], rest + FOREIGN[1], *FOREIGN[2:]])
    )
    return serving


def warned(sandbox: Sandbox, *arguments: str) -> str:
    """A call that succeeds with a warning; returns its output."""
    result = sandbox.run(*arguments)
    assert result.returncode == 0, result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"warning: {sandbox.state} has lines or fields that this")
    assert "tacker-k8s-mgmt csar build: '" in line
    assert "; 'restricted web fd00::/8 10.0.0.0/8'" in line
    assert "'api-port 6443 tls'" in line or "'api-port 7443 tls'" in line
    assert line.isprintable()
    return result.stdout.strip()


def kept(sandbox: Sandbox) -> tuple[tuple[str, ...], dict[str, str]]:
    """The foreign lines and the further fields that are left."""
    lines = sandbox.state.read_text().splitlines()
    fields = {
        line: known.removeprefix(f"{line} ")
        for line in FURTHER
        for known in lines
        if known.startswith(f"{line} ")
    }
    return tuple(line for line in lines if line in FOREIGN), fields


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("add-worker", "w=10.0.0.9"), id="add-worker"),
        pytest.param(("remove-worker", "worker55"), id="remove-worker"),
        pytest.param(("expose", "x", "--port", "81", "--node-port", "31"), id="expose"),
        pytest.param((*INSTALL, "--worker", "w=10.0.0.9"), id="install"),
    ],
)
def test_a_change_keeps_what_it_does_not_know(newer, arguments):
    for outcome in ("changed", "unchanged"):
        assert warned(newer, *arguments) == outcome
        assert kept(newer) == (FOREIGN, FURTHER)
    assert newer.state.read_text().startswith("# tacker-k8s-mgmt load balancer, format")
    for word in ("frob", "restricted", "weight", "zone", "proxy-v2"):
        assert word not in newer.config.read_text()


def test_status_ignores_it(newer):
    before = newer.written()
    output = warned(newer, "status")
    assert '"api_port":6443' in output
    assert '"port":80,"node_port":30080,"check_port":30080' in output
    assert newer.written() == before


def test_further_fields_go_with_what_they_belong_to(newer):
    warned(newer, "remove-worker", "worker5")
    warned(newer, "unexpose", "web")
    warned(newer, "install", "--api-port", "7443", "--control-plane", "cp=10.0.0.1")
    lines = newer.state.read_text().splitlines()
    assert lines[1:] == [
        "api-port 7443 tls",
        "control-plane cp 10.0.0.1 6443",
        *FOREIGN,
    ]


def test_a_failure_is_one_line_all_the_same(newer):
    before = newer.written()
    taken = newer.refused("expose", "x", "--port", "80", "--node-port", "31")
    assert "port 80 is used twice" in taken
    assert newer.written() == before
