# SPDX-License-Identifier: Apache-2.0
"""Where the parts of a VNF package come from."""

import re
from collections.abc import Mapping
from pathlib import Path

import tacker_k8s_mgmt
from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.model import load_balancer
from tacker_k8s_mgmt.tools.csar import archive
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, Api

#: Entry point, item of ``vnflcm_mgmt_driver`` and artifact key, which must be equal;
#: the v2 API has only the artifact key, which could be any.
DRIVER = "mgmt-drivers-kubespray"
#: Files of ``scripts/`` by their paths in packages, which requests name in
#: ``script_path``; the second is that of the specification's sample request.
SCRIPTS = {
    "Scripts/install_external_lb.sh": "install_external_lb.sh",
    "Scripts/ExternalLB_installation.sh": "install_external_lb.sh",
}
#: The SOL001 types: the driver's, or the official files of the same names.
TYPES = ("etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml")

_HERE = Path(tacker_k8s_mgmt.__file__).parent


def _root(name: str) -> Path:
    """``samples`` or ``scripts``: inside the installed package or beside the source."""
    installed = _HERE / name
    return installed if installed.is_dir() else _HERE.parent / name


def samples(api: Api = V1) -> Path:
    """The directory of the samples (``vnfd/``, ``hot/``, ``requests/``)."""
    return _root("samples") / api.samples


def driver(api: Api = V1) -> bytes:
    """The installed driver's file, byte by byte as Tacker's v1 API hashes it."""
    return own_file(Path(api.driver_file).name)


def own_file(name: str) -> bytes:
    """A file of the installed package that VNF packages have a copy of."""
    return (_HERE / name).read_bytes()


def types() -> dict[str, bytes]:
    """The driver's SOL001 types, by their path in a package."""
    place = samples() / "vnfd" / "types"
    return {f"Definitions/{name}": (place / name).read_bytes() for name in TYPES}


def tree(root: Path) -> dict[str, bytes]:
    """The files below a directory, as :func:`collect` takes them."""
    return {name: path.read_bytes() for name, path in _tree(root, "").items()}


def is_package(source: Path) -> bool:
    """Whether a directory is laid out as a VNF package, and not as ``samples/``."""
    return (source / "Definitions").is_dir() and (source / "BaseHOT").is_dir()


def flavours(source: Path) -> tuple[str, ...]:
    """Names of the deployment flavours with VNFD and HOT in *source*."""
    if is_package(source):
        names = [path.name for path in source.glob("BaseHOT/*") if path.is_dir()]
    else:
        definitions = source.glob("vnfd/*/Definitions")
        described = [path.parent.name for path in definitions if path.is_dir()]
        names = [name for name in described if (source / "hot" / name).is_dir()]
    return tuple(sorted(names))


def collect(
    flavour: str, *, source: Path, types: Path | None = None, api: Api = V1
) -> dict[str, bytes]:
    """The files of a package by their path in it, without TOSCA.meta.

    :param source: a directory laid out as ``samples/``, or as a package. The driver's
        file of a package is replaced, and so is a load balancer's script with the name
        of the driver's own that keeps an earlier contract.
    :param types: a directory with the SOL001 types; default: those of *source*, or the
        driver's.
    :raises PackageError: naming every file that is missing.
    """
    default = samples() / "vnfd" / "types"
    paths = {path: _root("scripts") / name for path, name in SCRIPTS.items()}
    paths |= {f"Definitions/{name}": default / name for name in TYPES}
    if is_package(source):
        paths |= {
            name: path
            for name, path in _tree(source, "").items()
            if name != archive.PATH
            and (name not in SCRIPTS or not _is_older(path, paths[name]))
        }
    else:
        own_types = source / "vnfd" / "types"
        types = types or (own_types if own_types.is_dir() else None)
        paths |= _tree(source / "vnfd" / flavour, "")
        paths |= _tree(source / "hot" / flavour, f"BaseHOT/{flavour}/")
    if types:
        paths |= {f"Definitions/{name}": types / name for name in TYPES}
    missing = [
        f"{name} is missing: there is no file {path}"
        for name, path in sorted(paths.items())
        if not path.is_file()
    ]
    if flavour not in flavours(source):
        known = ", ".join(flavours(source)) or "none"
        missing.insert(0, f"{source} has no flavour {flavour} (it has: {known})")
    if missing:
        raise PackageError(flavour, missing)
    files = {name: path.read_bytes() for name, path in paths.items()}
    for name in (f"Definitions/{name}" for name in TYPES):
        files[name] = _without_urls(files[name])
    return {**files, api.driver_file: driver(api)}


def _is_older(script: Path, own: Path) -> bool:
    """Whether a script keeps an earlier contract than the driver's own."""
    contract = load_balancer.contract
    return contract(script.read_bytes()) < contract(own.read_bytes())


def replaced(files: Mapping[str, bytes], source: Path) -> tuple[str, ...]:
    """The scripts of a package that differ from those of *source*."""
    return tuple(
        name
        for name, content in sorted(files.items())
        if name.startswith("Scripts/")
        and (source / name).is_file()
        and (source / name).read_bytes() != content
    )


def _without_urls(types_file: bytes) -> bytes:
    """The official types, which import each other by URL, with local imports instead.

    A Tacker from PyPI has no copy of its own and would fetch them at every parsing.
    """
    names = b"|".join(re.escape(name.encode()) for name in TYPES)
    return re.sub(rb"https?://[\w./-]+/(" + names + rb")", rb"\1", types_file)


def _tree(root: Path, prefix: str) -> dict[str, Path]:
    """Files below *root*, without leftovers of Python, editors and file managers."""
    files = {}
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
        if path.is_file() and not hidden and not path.name.endswith(("~", ".pyc")):
            files[prefix + "/".join(parts)] = path
    return files
