"""Writing and removing files, for the modules here."""

import base64
import os
import shutil
import tempfile
from typing import Any

OPTIONS: dict[str, dict[str, Any]] = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str", "no_log": True},
    "source": {"type": "path"},
    "mode": {"type": "str", "default": "0644"},
    "base64": {"type": "bool", "default": False},
    "restarts": {"type": "bool", "default": True},
}
"""A file to write: its text (or bytes in base64), or the file of the same host that it
is a copy of; that one is large and looked at only where there is none yet.
``restarts``: whether its unit has to be started anew when it has changed.
"""


def write(wanted: dict[str, Any]) -> bool:
    """Make the file so; whether it was not.

    :param wanted: values for :data:`OPTIONS`.
    """
    path, mode = wanted["path"], int(wanted["mode"], 8)
    if wanted["source"]:
        if os.path.exists(path):
            return False
        return _put(path, mode, lambda file: _copy(wanted["source"], file))
    content = wanted["content"].encode()
    if wanted["base64"]:
        content = base64.b64decode(content)
    if os.path.exists(path):
        with open(path, "rb") as file:
            same = file.read() == content
        if same and os.stat(path).st_mode & 0o7777 == mode:
            return False
    return _put(path, mode, lambda file: file.write(content))


def _copy(source: str, file: Any) -> None:
    with open(source, "rb") as given:
        shutil.copyfileobj(given, file)


def _put(path: str, mode: int, fill: Any) -> bool:
    """Have the whole file appear at once."""
    directory = os.path.dirname(path)
    os.makedirs(directory, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=directory)
    with os.fdopen(descriptor, "wb") as file:
        fill(file)
    os.chmod(temporary, mode)
    os.replace(temporary, path)
    return True


def remove(path: str) -> bool:
    """Make the path absent; whether it was there."""
    if not os.path.lexists(path):
        return False
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)
    return True
