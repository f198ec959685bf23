# SPDX-License-Identifier: Apache-2.0
"""The work directory on the Ansible server."""

from collections.abc import Sequence

from tacker_k8s_mgmt import errors
from tests.helpers.fakes.state import SiteState
from tests.helpers.requests import VNF


class FakeWorkDir:
    """The directory as a dict of files."""

    path = "/srv/clusters/one"

    def __init__(self, site: SiteState) -> None:
        self._site = site

    def owner(self) -> str | None:
        self._site.touch("workdir.owner")
        return self._site.owner

    def claim(self) -> None:
        self._site.touch("workdir.claim")
        if self._site.owner not in (None, VNF):
            raise errors.OwnershipError(path=self.path, host="a", reason="is not ours")
        self._site.change("owner", VNF)

    def write(self, name: str, text: str) -> bool:
        self._site.touch(f"workdir.write {name}")
        changed = self._site.files.get(name) != text
        if changed:
            self._site.changes.append(f"write {name}")
            self._site.files[name] = text
        return changed

    def read(self, name: str) -> str | None:
        text = self._site.files.get(name)
        if text is not None and "\ufffd" in text:
            path = f"{self.path}/{name}"
            raise errors.DamagedFile(path=path, host="a", reason="it is not a text")
        return text

    def clear(self, keep: Sequence[str] = ()) -> bool:
        self._site.touch("workdir.clear")
        return self._empty(keep)

    def remove(self) -> bool:
        self._site.touch("workdir.remove")
        there = self._empty(())
        self._site.change("owner", None)
        return there

    def _empty(self, keep: Sequence[str]) -> bool:
        files = self._site.files
        self._site.files = {name: files[name] for name in keep if name in files}
        # The runs are in the directory.
        self._site.ran = self._site.running = ""
        return self._site.owner is not None
