"""Where the parts of a VNF package come from."""

import re
from collections.abc import Mapping
from pathlib import Path

import tacker_k8s_mgmt
from tacker_k8s_mgmt.csar import meta
from tacker_k8s_mgmt.csar.api import V1, Api
from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.model import load_balancer

DRIVER = "mgmt-drivers-kubespray"
"""Entry point, item of ``vnflcm_mgmt_driver`` and artifact key: all one name.

For the v2 API it is the artifact key alone, which could be any.
"""

SCRIPTS = ("install_external_lb.sh",)
"""What goes from ``scripts/`` into the package; requests name it in ``script_path``."""

TYPES = ("etsi_nfv_sol001_common_types.yaml", "etsi_nfv_sol001_vnfd_types.yaml")
"""The SOL001 types: ours, or the official files of the same names."""

_HERE = Path(tacker_k8s_mgmt.__file__).parent


def _root(name: str) -> Path:
    """``samples`` or ``scripts``: inside the installed package or beside the source."""
    installed = _HERE / name
    return installed if installed.is_dir() else _HERE.parent / name


def samples(api: Api = V1) -> Path:
    """The directory of our samples (``vnfd/``, ``hot/``, ``requests/``)."""
    return _root("samples") / api.samples


def driver(api: Api = V1) -> bytes:
    """The installed driver's file, byte by byte as Tacker's v1 API hashes it."""
    return (_HERE / Path(api.driver_file).name).read_bytes()


def is_package(source: Path) -> bool:
    """Whether a directory is laid out as a VNF package, and not as our ``samples/``."""
    return (source / "Definitions").is_dir() and (source / "BaseHOT").is_dir()


def flavours(source: Path) -> tuple[str, ...]:
    """Names of the deployment flavours of which *source* has VNFD and HOT."""
    if is_package(source):
        found = [path.name for path in source.glob("BaseHOT/*") if path.is_dir()]
    else:
        found = [
            path.name
            for path in source.glob("vnfd/*")
            if (path / "Definitions").is_dir() and (source / "hot" / path.name).is_dir()
        ]
    return tuple(sorted(found))


def collect(
    flavour: str, *, source: Path, types: Path | None = None, api: Api = V1
) -> dict[str, bytes]:
    """The files of a package by their path in it, without TOSCA.meta.

    :param source: a directory laid out as our ``samples/``, or as a package. Of a
        package the driver's file is replaced, and so is a load balancer's script that
        does not know the driver's verbs.
    :param types: a directory with the SOL001 types; default: those of *source* or ours.
    :raises PackageError: naming everything that is not there.
    """
    wanted = {f"Scripts/{name}": _root("scripts") / name for name in SCRIPTS}
    default = samples() / "vnfd" / "types"
    wanted |= {f"Definitions/{name}": default / name for name in TYPES}
    if is_package(source):
        own = _tree(source, "")
        own.pop(meta.PATH, None)
        wanted |= {name: path for name, path in own.items() if _is_usable(name, path)}
    else:
        own_types = source / "vnfd" / "types"
        types = types or (own_types if own_types.is_dir() else None)
        wanted |= _tree(source / "vnfd" / flavour, "")
        wanted |= _tree(source / "hot" / flavour, f"BaseHOT/{flavour}/")
    if types:
        wanted |= {f"Definitions/{name}": types / name for name in TYPES}
    missing = [
        f"{name} is missing: there is no file {path}"
        for name, path in sorted(wanted.items())
        if not path.is_file()
    ]
    if flavour not in flavours(source):
        known = ", ".join(flavours(source)) or "none"
        missing.insert(0, f"{source} has no flavour {flavour} (it has: {known})")
    if missing:
        raise PackageError(flavour, missing)
    files = {name: path.read_bytes() for name, path in wanted.items()}
    for name in (f"Definitions/{name}" for name in TYPES):
        files[name] = _without_urls(files[name])
    return {**files, api.driver_file: driver(api)}


def _is_usable(name: str, path: Path) -> bool:
    """Whether a file of a package is kept, and not replaced by ours."""
    ours = [f"Scripts/{script}" for script in SCRIPTS]
    return name not in ours or not load_balancer.unusable(path.read_bytes())


def replaced(files: Mapping[str, bytes], source: Path) -> tuple[str, ...]:
    """The files of a package that *source* has with another content."""
    return tuple(
        name
        for name, content in sorted(files.items())
        if name.startswith("Scripts/")
        and (source / name).is_file()
        and (source / name).read_bytes() != content
    )


def _without_urls(types_file: bytes) -> bytes:
    """The official types import each other from the Internet; both are in the package.

    A Tacker from PyPI has no copy of its own, so it would fetch them at every parsing.
    """
    names = b"|".join(re.escape(name.encode()) for name in TYPES)
    return re.sub(rb"https?://[\w./-]+/(" + names + rb")", rb"\1", types_file)


def _tree(root: Path, prefix: str) -> dict[str, Path]:
    """Files below *root*, without what Python, editors and file managers leave."""
    found = {}
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
        if path.is_file() and not hidden and not path.name.endswith(("~", ".pyc")):
            found[prefix + "/".join(parts)] = path
    return found
