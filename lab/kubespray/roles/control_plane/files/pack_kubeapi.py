# SPDX-License-Identifier: Apache-2.0
"""Print the API server's stand-in as a base64 zip archive that Python can run.

    pack_kubeapi.py DIRECTORY

The same sources give the same archive, so that an unchanged one restarts nothing.
"""

import base64
import io
import sys
import zipfile
from pathlib import Path

_MAIN = "from kubeapi.__main__ import main\n\nraise SystemExit(main())\n"
_ANY_DAY = (2026, 1, 1, 0, 0, 0)


def pack(package: Path) -> bytes:
    """The archive: a ``__main__.py`` and the package ``kubeapi``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _ANY_DAY), _MAIN)
        for source in sorted(package.rglob("*.py")):
            name = f"kubeapi/{source.relative_to(package).as_posix()}"
            entry = zipfile.ZipInfo(name, _ANY_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, source.read_bytes())
    return buffer.getvalue()


if __name__ == "__main__":
    print(base64.b64encode(pack(Path(sys.argv[1]).resolve())).decode())
