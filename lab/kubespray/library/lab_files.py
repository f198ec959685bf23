"""Ansible module: write and remove several files in one task.

``files``: list of {path, content, mode ("0644"), base64 (false)}; ``absent``: paths of
files and directories. Returns ``written``: the paths that changed.
"""

import base64
import os
import shutil
import tempfile
from typing import Any

from ansible.module_utils.basic import AnsibleModule


def _write(module: AnsibleModule, wanted: dict[str, Any]) -> bool:
    """Make the file so; whether it was not."""
    path, mode = wanted["path"], int(wanted["mode"], 8)
    content = wanted["content"].encode()
    if wanted["base64"]:
        content = base64.b64decode(content)
    if os.path.exists(path):
        with open(path, "rb") as file:
            same = file.read() == content
        if same and os.stat(path).st_mode & 0o7777 == mode:
            return False
    if not module.check_mode:
        directory = os.path.dirname(path)
        os.makedirs(directory, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=directory)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    return True


def _remove(module: AnsibleModule, path: str) -> bool:
    """Make the path absent; whether it was there."""
    if not os.path.lexists(path):
        return False
    if not module.check_mode:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)
    return True


def main() -> None:
    file_options = {
        "path": {"type": "str", "required": True},
        "content": {"type": "str", "required": True, "no_log": False},
        "mode": {"type": "str", "default": "0644"},
        "base64": {"type": "bool", "default": False},
    }
    module = AnsibleModule(
        {
            "files": {
                "type": "list",
                "elements": "dict",
                "options": file_options,
                "default": [],
            },
            "absent": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    written = [f["path"] for f in module.params["files"] if _write(module, f)]
    removed = [path for path in module.params["absent"] if _remove(module, path)]
    module.exit_json(changed=bool(written or removed), written=written, removed=removed)


if __name__ == "__main__":
    main()
