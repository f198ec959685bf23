# SPDX-License-Identifier: Apache-2.0
"""What ran for real, with which versions and how long: a file for each release."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from lab.real.site import Site
from lab.settings import Settings

PASSED, FAILED = "passed", "FAILED"


@dataclass
class Report:
    """The scenarios that were run with one release of kubespray.

    :ivar scenarios: by name, with ``outcome``, ``began``, ``seconds``, ``tests`` and
        ``versions``.
    """

    path: Path
    kubespray: str
    scenarios: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings) -> "Report":
        """The report of the release in a laboratory, with what is in it already."""
        version = Site.load(settings.state).version
        path = settings.cache / "reports" / f"kubespray-{version}.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        return cls(path, version, known.get("scenarios", {}))

    def has_passed(self, name: str) -> bool:
        """Whether a scenario ran to its end without a failure."""
        return self.scenarios.get(name, {}).get("outcome") == PASSED

    def add(self, name: str, began: float, result: Path, succeeded: bool) -> None:
        """Take over what pytest wrote of a scenario; nothing: it was stopped.

        :param succeeded: pytest's exit code is 0; of a run that was interrupted its
            report has the tests up to then, and they may all have passed.
        """
        found: dict[str, Any] = {
            "outcome": FAILED,
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
            "seconds": round(time.time() - began),
            "tests": [],
        }
        if result.exists():
            found.update(read(result))
        if not succeeded:
            found["outcome"] = FAILED
        self.scenarios[name] = found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = {"kubespray": self.kubespray, "scenarios": self.scenarios}
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(whole, indent=2) + "\n")
        new.replace(self.path)

    def text(self) -> str:
        """The report as lines."""
        lines = [f"kubespray {self.kubespray}"]
        for name, one in self.scenarios.items():
            seconds = f"{one['seconds'] / 60:.0f} min"
            lines.append(
                f"  {name:<12} {one['outcome']:<8} {seconds:>8}  {one['began']}"
            )
            for test in one["tests"]:
                mark = "" if test["outcome"] == PASSED else test["outcome"]
                lines.append(f"    {test['seconds']:>7.0f} s  {test['name']} {mark}")
        return "\n".join(lines)


def read(result: Path) -> dict[str, Any]:
    """Outcome, tests and properties of pytest's XML report."""
    suite = ElementTree.parse(result).getroot().find("testsuite")  # noqa: S314  our own
    if suite is None:
        return {}
    tests = [
        {
            "name": case.get("name"),
            "seconds": round(float(case.get("time", 0)), 1),
            "outcome": _outcome(case),
        }
        for case in suite.iter("testcase")
    ]
    found = {one.get("name"): one.get("value", "") for one in suite.iter("property")}
    all_passed = bool(tests) and all(test["outcome"] == PASSED for test in tests)
    return {
        "outcome": PASSED if all_passed else FAILED,
        "tests": tests,
        "versions": json.loads(found.get("versions") or "{}"),
    }


def _outcome(case: ElementTree.Element) -> str:
    for kind in ("failure", "error", "skipped"):
        if case.find(kind) is not None:
            return kind
    return PASSED
