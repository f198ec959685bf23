# SPDX-License-Identifier: Apache-2.0
"""TOSCA.meta and the SOL004 manifest are read as the installed Tacker reads them."""

import hashlib

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.common import csar_utils, exceptions
from tacker.vnflcm import utils as vnflcm_utils
from toscaparser.common.exception import ExceptionCollector
from toscaparser.prereq.csar import CSAR

from tacker_k8s_mgmt.tools.csar import archive
from tacker_k8s_mgmt.tools.csar.package_check import _leads_to_flavour
from tests.helpers.samples import BESIDE

ENTRY = "Definitions/top.yaml"
FILES = {
    ENTRY: b"tosca_definitions_version: tosca_simple_yaml_1_2\n",
    "Scripts/run.sh": b"true\n",
    "Files/disk.qcow2": b"disk\n",
}


def entry(name, **changes):
    content = FILES.get(name, b"")
    fields = {
        "Name": name,
        "Content-Type": "text/plain",
        "Algorithm": "SHA-256",
        "Hash": hashlib.sha256(content).hexdigest(),
        **changes,
    }
    return "".join(f"{k}: {v}\n" for k, v in fields.items() if v is not None)


HEAD = f"TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nEntry-Definitions: {ENTRY}\n"
GOOD = entry("Scripts/run.sh")
MANIFEST = "ETSI-Entry-Manifest: Files/own.mf\n"


def of_source(**changes):
    return entry("Scripts/run.sh", Name=None, Source="Scripts/run.sh", **changes)


# TOSCA.meta as blocks, and a manifest.
CASES = {
    "as it should be": ([HEAD, GOOD], None),
    "no hashes": ([HEAD], None),
    "another entry file further down": (
        [HEAD, f"{GOOD}", "Entry-Definitions: x"],
        None,
    ),
    "no entry file": (["CSAR-Version: 1.1\n", GOOD], None),
    "a line that is no YAML": ([HEAD + "no colon\n", GOOD], None),
    "a tab": ([HEAD, f"\t{GOOD}"], None),
    "another key": ([HEAD, entry("Scripts/run.sh", Owner="us")], None),
    "no algorithm": ([HEAD, entry("Scripts/run.sh", Algorithm=None)], None),
    "no hash": ([HEAD, entry("Scripts/run.sh", Hash=None)], None),
    "neither, which is no artifact": ([HEAD, "Name: nothing\n"], None),
    "an empty hash": ([HEAD, entry("Scripts/run.sh", Hash="")], None),
    "a wrong hash": ([HEAD, entry("Scripts/run.sh", Hash="0" * 64)], None),
    "capital letters": ([HEAD, entry("Scripts/run.sh", Hash=GOOD[-65:].upper())], None),
    "an algorithm in small letters": (
        [HEAD, entry("Scripts/run.sh", Algorithm="sha-256")],
        None,
    ),
    "an unknown algorithm": ([HEAD, entry("Scripts/run.sh", Algorithm="MD5")], None),
    "a number as algorithm": ([HEAD, entry("Scripts/run.sh", Algorithm="256")], None),
    "an image with another hash": ([HEAD, entry("Files/disk.qcow2", Hash="00")], None),
    "an image that is not there": ([HEAD, entry("Files/other.img")], None),
    "a file that is not there": ([HEAD, entry("Scripts/other.sh")], None),
    "a path that leads out": ([HEAD, entry("../run.sh")], None),
    "an absolute path": ([HEAD, entry("/etc/hostname")], None),
    "a number as name": ([HEAD, entry("12")], None),
    "Source in place of Name": ([HEAD, of_source()], None),
    "Source and Name": ([HEAD, f"{GOOD}Source: other\n"], None),
    "head and hash in one block": ([HEAD + GOOD], None),
    "two files in one block": ([HEAD, GOOD + entry(ENTRY)], None),
    "line ends of Windows": (["\r\n".join([*HEAD.split("\n"), GOOD])], None),
    "a manifest": ([HEAD + MANIFEST], [of_source()]),
    "a manifest with a wrong hash": ([HEAD + MANIFEST], [of_source(Hash="0" * 64)]),
    "a manifest with metadata": (
        [HEAD + MANIFEST],
        ["metadata:\n  vnf_provider_id: us\n", of_source()],
    ),
    "a signature": (
        [HEAD + MANIFEST],
        [of_source(), "-----BEGIN CMS-----\nAlgorithm: x\n"],
    ),
    "a manifest that is not there": ([HEAD + MANIFEST], None),
    "a manifest of another name": (
        [f"{HEAD}ETSI-Entry-Manifest: Scripts/run.sh\n"],
        None,
    ),
    "an empty name of a manifest": ([f"{HEAD}ETSI-Entry-Manifest:\n"], None),
}


@pytest.mark.parametrize(("blocks", "manifest"), CASES.values(), ids=CASES)
def test_we_refuse_what_tacker_refuses(tmp_path, blocks, manifest):
    files = {**FILES, archive.PATH: "\n".join(blocks).encode()}
    if manifest is not None:
        files["Files/own.mf"] = "\n".join(manifest).encode()
    path = tmp_path / "package.zip"
    archive.write(path, files)
    ours = list(archive.problems(files))
    assert bool(ours) is not taken(path), ours


def taken(path):
    """Whether Tacker's upload takes the metadata of a package."""
    ExceptionCollector.start()
    try:
        csar = CSAR(str(path))
        if not csar.validate():
            return False
        csar_utils._get_vnf_artifacts(csar, str(path.parent))
    except exceptions.InvalidCSAR:
        return False
    except Exception:  # Tacker makes InvalidCSAR of each
        return False
    finally:
        ExceptionCollector.stop()
        ExceptionCollector.clear()
    return True


OTHERS = {
    "another file": b"a: 1\n",
    "a flavour": b"topology_template: {substitution_mappings: {properties: {a: 1}}}\n",
    "a mapping without properties": b"topology_template: {substitution_mappings: {}}\n",
}


@pytest.mark.parametrize("content", [*BESIDE.values(), *OTHERS.values()])
def test_what_v1_cannot_read_beside_the_vnfd(tmp_path, content):
    (tmp_path / "Files").mkdir()
    (tmp_path / "Files" / "app.yaml").write_bytes(content)
    try:
        vnflcm_utils._get_flavour_based_vnfd(str(tmp_path), "simple")
    except Exception:  # whatever PyYAML and the dictionaries raise
        assert not _leads_to_flavour(content)
    else:
        assert _leads_to_flavour(content)


def test_v1_finds_no_flavour_that_is_a_number(tmp_path):
    (tmp_path / "Definitions").mkdir()
    mapped = (
        "topology_template: {substitution_mappings: {properties: {flavour_id: %s}}}"
    )
    for written, found in (("1", False), ("'1'", True)):
        (tmp_path / "Definitions" / "df.yaml").write_text(mapped % written)
        read = vnflcm_utils._get_flavour_based_vnfd(str(tmp_path), "1")
        assert bool(read) is found
