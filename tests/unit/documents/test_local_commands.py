# SPDX-License-Identifier: Apache-2.0
"""Commands of the guides that need no lab are run as they are printed."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from lab import __main__ as lab
from tacker_k8s_mgmt.tools.csar import parts, tacker_api
from tests.documents import account, blocks, running
from tests.helpers import sampledriver
from tests.tree import ROOT

PARAMETERS = "k8s_cluster_installation_param"


def by_page(chosen):
    """Each command of a page once, in the order in which they are printed."""
    pages = {}
    for one in blocks.commands():
        if one in chosen:
            pages.setdefault(one.where.split(":")[0], {}).setdefault(one.text, one)
    return {page: list(found.values()) for page, found in pages.items()}


PAGES = by_page(account.matching(account.LOCAL))


def request(name, version=tacker_api.V1):
    return json.loads((parts.samples(version) / "requests" / name).read_text())


def wrong(command):
    """The request of which the page shows what is wrong with it."""
    body = request("instantiate-simple.json")
    ours = body["additionalParams"][PARAMETERS]
    if " csar " in command:
        body["flavourId"] = "simpel"
        script = ours["external_lb_param"]["script_path"]
        ours["external_lb_param"]["script_path"] = script.replace("install_", "instal_")
        ours["worker_node"]["nic_cp_name"] = "workerNode_CP3"
    else:
        ours["worker_node"]["aspectid"] = ours["worker_node"].pop("aspect_id")
        ours["master_node"]["cluster_cidr"] = "10.233.0.0/18"
        ours["master_node"]["pod_cidr"] = "10.233.0.0/16"
    return body


def machines():
    """The list of VMs that the page of the command line shows."""
    text = (ROOT / "doc" / "source" / "cli.rst").read_text()
    (found,) = re.findall(r"\n( +\[\n +\{\"role\".*?\n +\])\n", text, re.DOTALL)
    return json.loads(found)


def profiles(place: Path) -> None:
    """The profile that the page shows, and requests with it and with the driver's."""
    text = (ROOT / "doc" / "source" / "profiles.rst").read_text()
    (found,) = re.findall(r"code-block:: yaml\n\n((?:   .*\n|\n)+)", text)
    (place / "profiles").mkdir()
    (place / "profiles" / "media.yaml").write_text(textwrap.dedent(found))
    media, platform = (request("instantiate-simple.json") for _ in range(2))
    ours = media["additionalParams"][PARAMETERS]
    ours |= {"profile": "media", "cluster": {"kubernetes_version": "1.35.4"}}
    ours = platform["additionalParams"][PARAMETERS]
    webhook = {"url": "https://keystone.example.org:8443/webhook"}
    ours |= {"profile": "starlingx", "cluster": {"container_manager": "crio"}}
    ours["cluster"]["authentication"] = {"webhook": webhook}
    ours["worker_node"]["node_labels"] = ["example.org/kind=video"]
    (place / "media.json").write_text(json.dumps(media))
    (place / "platform.json").write_text(json.dumps(platform))


def fill(place: Path, page: str) -> None:
    """What a reader of the page has in the directory."""
    version = tacker_api.V2 if page in ("v2.rst", "packages.rst") else tacker_api.V1
    shutil.copytree(ROOT / "samples", place / "samples")
    if page == "migration.rst":
        (place / "kubespray_vnf_package").mkdir()
        sampledriver.write(place / "kubespray_vnf_package")
    if page == "profiles.rst":
        profiles(place)
    files = {
        "instantiate.json": request("instantiate-simple.json", version),
        "heal.json": request("heal-worker.json", version),
        "scale.json": request("scale-out.json", version),
        "terminate.json": request("terminate.json", version),
        "your-request.json": sampledriver.body(),
        "machines.json": machines(),
    }
    for name, content in files.items():
        (place / name).write_text(json.dumps(content))
    (place / "vm-password").write_text("s3cret\n")


def as_shown(shown, output):
    """Whether the lines of a page are in an output, in their order.

    ``...`` stands for any lines, and ``…`` for the rest of a word.
    """
    lines = iter(output.splitlines())
    wanted = [line for line in shown if line.strip() not in ("", "...")]
    starts = [re.sub(r"\S*…$", "", line).rstrip() for line in wanted]
    return [
        start for start in starts if not any(line.startswith(start) for line in lines)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_work_one_after_the_other(tmp_path, page):
    fill(tmp_path, page)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in PAGES[page]:
        # What a page builds again under the same name is an alternative.
        for made in re.findall(r" -o (\S+)", command.text):
            (tmp_path / made).unlink(missing_ok=True)
        faulty = "wrong.json" in command.text
        if faulty:
            (tmp_path / "wrong.json").write_text(json.dumps(wrong(command.text)))
        output = running.run(
            running.script([command], {}),
            tmp_path,
            {**os.environ, "PATH": path, "COLUMNS": "200"},
            expect=1 if faulty else 0,
        )
        missing = as_shown(command.shown, output)
        assert not missing, f"{command.where}: {command.text}\n{missing}\n{output}"


def words(prefix):
    """The words of each command that begins so, without what the shell reads."""
    found = [
        one for one in account.matching(account.READ) if one.text.startswith(prefix)
    ]
    assert found
    return [
        shlex.split(one.text.replace(prefix, "", 1), comments=True) for one in found
    ]


def test_targets_of_make_are_there():
    done = subprocess.run(
        ["make", "-C", ROOT, "--dry-run", *{one[0] for one in words("make ")}],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("prefix", "parser"),
    [
        ("sudo python3 -m lab ", lab.parser()),
        ("python3 -m lab ", lab.parser()),
        ("python3 -m benchmarks", benchmarks.parser()),
    ],
)
def test_programs_take_the_words_that_are_printed(prefix, parser):
    for word in words(prefix):
        assert isinstance(parser.parse_args(word), argparse.Namespace)
