# SPDX-License-Identifier: Apache-2.0
"""The lab as its user commands it; runs outside the lab's namespaces."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from lab import LabError, environments, files, packages, pins, programs, seed, suites
from lab.cloud.systemd import cgroups, requirements, root
from lab.namespace import Namespace, clean_environment, user_environment
from lab.real import build, site
from lab.report import Report, Task, run_all
from lab.settings import SYSTEM_PYTHON, Settings, choose_kind, places

TAIL_LINES = "100"


class Lab:
    """One lab."""

    def __init__(self, settings: Settings, report: Report) -> None:
        self._settings = settings
        self._report = report
        self._namespace = Namespace(settings)

    def install(self, *, with_tests: bool = False) -> None:
        """Install what is missing: programs, environments, the project.

        Without root it installs the environments, and reports which programs the lab
        would need.

        :param with_tests: the test tools as well.
        :raises LabError: something cannot be installed; exit code 2 when the user must.
        """
        tools, names = [*packages.TOOLS], [*environments.NAMES]
        if with_tests:
            tools += packages.TEST_TOOLS
            names += [environments.LOWEST, environments.DOCS, environments.SCHEMAS]
        missing = packages.missing(tools)
        self._settings.cache.mkdir(parents=True, exist_ok=True)
        with files.locked(self._settings.cache / "lock", self._busy):
            self._install(missing, names)
            for name in environments.TESTED if with_tests else [environments.TACKER]:
                environments.install_project(self._settings, self._report, name)
                if with_tests:
                    environments.add_tests(self._settings, self._report, name)
            if with_tests:
                self._install_browser()
                suites.prepare(self._settings, self._report, suites.TESTED)

    def install_docs(self) -> None:
        """Install what builds the documentation, and nothing else.

        :raises LabError: as :meth:`install`.
        """
        self._settings.cache.mkdir(parents=True, exist_ok=True)
        with files.locked(self._settings.cache / "lock", self._busy):
            self._require_venv([environments.DOCS])
            environments.prepare(self._settings, self._report, [environments.DOCS])
            self._install_browser()

    def _require_venv(self, names: Sequence[str]) -> None:
        ready = all(environments.is_ready(self._settings, name) for name in names)
        if not ready and packages.lacks_venv():
            with self._report.step(packages.VENV.package):
                packages.install([packages.VENV], self._settings.cache / "install.log")

    def _install(self, missing: Sequence[packages.Tool], names: Sequence[str]) -> None:
        settings = self._settings
        # Environments need this one only, so they are built while apt does the rest.
        self._require_venv(names)
        environments.prepare_tools(settings, self._report)
        work = [
            Task("kubectl", lambda: programs.prepare_kubectl(settings)),
            Task("etcd", lambda: programs.prepare_etcd(settings)),
            Task("helm", lambda: programs.prepare_helm(settings)),
            Task(
                "environments",
                lambda: environments.prepare(settings, self._report, names),
            ),
        ]
        if missing and os.geteuid() != 0:
            self._report.line(packages.explain(missing))
        elif missing:
            work.append(Task("apt", lambda: self._install_packages(missing)))
        run_all(work)

    def _install_browser(self) -> None:
        """Without one, the documentation's check says what it has left out.

        So a system that has no such package, as Ubuntu, is no reason to fail.
        """
        missing = packages.missing([packages.CHROMIUM])
        if missing and os.geteuid() != 0:
            self._report.line(packages.explain(missing))
        elif missing:
            try:
                self._install_packages(missing)
            except LabError as error:
                self._report.line(f"{packages.CHROMIUM.program}: {error}")

    def _install_packages(self, missing: Sequence[packages.Tool]) -> None:
        wanted = " ".join(sorted({tool.package for tool in missing}))
        with self._report.step(f"apt: {wanted}"):
            packages.install(missing, self._settings.cache / "install.log")

    def make_databases(self) -> None:
        """Make the databases that every new lab starts with, unless they are there.

        :raises LabError: they could not be made.
        """
        _require_root()
        with files.locked(self._settings.cache / "seeds.lock", self._busy):
            seed.make(self._settings, self._report)

    def renew_pins(self, names: Sequence[str], upper: Path | None) -> None:
        """Choose the versions of environments again, and write them to files.

        :param names: of :data:`.pins.NAMES`; all of them when there is none.
        :param upper: OpenStack's whole list of upper constraints.
        :raises LabError: what was asked for contradicts itself.
        """
        with files.locked(self._settings.cache / "lock", self._busy):
            pins.renew(self._settings, self._report, names or pins.NAMES, upper)

    def up(
        self,
        *,
        real: bool = False,
        memory: int | None = None,
        kubespray: site.Wanted | None = None,
    ) -> None:
        """Install what is missing and start what does not run.

        :param real: have VMs boot systemd; default: as the lab was started before.
        :param memory: limit of such a VM in bytes.
        :param kubespray: the real one; it needs such VMs. Default: as before.
        :raises LabError: with what failed and where the log is.
        """
        _require_root()
        began = time.monotonic()
        self.install()
        self.make_databases()
        with files.locked(self._lock(), self._busy):
            files.claim(self._settings.state)
            if kubespray:
                real = True
                build.prepare(self._settings, self._report, kubespray)
            if choose_kind(self._settings, real=real, memory=memory):
                self._prepare_real_hosts()
            seed.copy(self._settings)
            self._namespace.start()
            if self._inside("is-up") == 0:
                self._report.line(f"The lab is up already: {self._settings.state}")
                return
            self._report.line(f"services, in {self._settings.state}:")
            if self._inside("up"):
                raise LabError(
                    "The lab is not complete. Look: python3 -m lab logs."
                    " Try again: python3 -m lab up. Give up: python3 -m lab down"
                )
        self._report.line(f"The lab is up after {time.monotonic() - began:.0f} s.")

    def _prepare_real_hosts(self) -> None:
        requirements.fulfil(self._settings)
        with files.locked(self._settings.cache / "roots.lock", self._busy):
            root.make(self._settings, self._report)
        if not self._namespace.pid():
            # Of a lab that was killed.
            cgroups.remove_all(self._settings.cloud)

    def down(self, *, keep: bool = False) -> None:
        """Take the lab away.

        :param keep: leave the state directory, for a later ``up``.
        :raises LabError: the state directory is not a lab's.
        """
        _require_root()
        if not self._settings.state.exists():
            self._report.line("There is no lab.")
            return
        if not files.is_ours(self._settings.state):
            raise LabError(f"{self._settings.state} is not a lab's", 2)
        began = time.monotonic()
        with files.locked(self._lock(), self._busy):
            # What is thrown away need not be stopped with care.
            if keep and self._namespace.pid():
                self._inside("stop")
            self._namespace.end()
            cgroups.remove_all(self._settings.cloud)
            if not keep:
                files.remove(self._settings.state)
        self._report.line(f"The lab is down after {time.monotonic() - began:.1f} s.")

    def status(self) -> int:
        """Print what runs; 0 when all does, 1 when a part does, 3 when nothing does."""
        _require_root()
        pid = self._namespace.pid()
        if pid is None:
            self._report.line(f"No lab runs in {self._settings.state}.")
            return 3
        self._report.line(f"Lab in {self._settings.state}, init process {pid}")
        return self._inside("status")

    def end(self, verb: str, names: Sequence[str], *, kill: bool) -> int:
        """``stop`` or ``restart`` services; the exit code."""
        _require_root()
        return self._inside(verb, *(["--kill"] if kill else []), *names)

    def logs(self, name: str | None, *, follow: bool) -> None:
        """Become ``tail`` on one log, or on all of them.

        :raises LabError: there is no such log.
        """
        directory = self._settings.log
        chosen = (
            [directory / f"{name}.log"] if name else sorted(directory.glob("*.log"))
        )
        if not chosen or not chosen[0].exists():
            there = ", ".join(sorted(path.stem for path in directory.glob("*.log")))
            raise LabError(f"No such log; there are: {there or 'none'}", 2)
        options = ["-n", TAIL_LINES, *(["-F"] if follow else [])]
        os.execvp("tail", ["tail", *options, *map(str, chosen)])  # noqa: S606

    def execute(self, argv: Sequence[str]) -> None:
        """Become a command inside the lab.

        :raises LabError: the lab does not run.
        """
        _require_root()
        command = self._namespace.argv(argv, Path.cwd())
        os.execvpe(command[0], command, user_environment(self._settings))  # noqa: S606

    def _inside(self, *arguments: str) -> int:
        command = [SYSTEM_PYTHON, "-m", "lab.services", *arguments]
        env = {**clean_environment(), **places(self._settings)}
        return self._namespace.run(command, env)

    def _busy(self) -> None:
        self._report.line("  waiting for another command of the lab ...")

    def _lock(self) -> Path:
        # Outside the state directory, which is removed under it.
        name = str(self._settings.state).strip("/").replace("/", "-")
        return self._settings.cache / "locks" / name


def _require_root() -> None:
    if os.geteuid() != 0:
        raise LabError(
            "The lab makes namespaces and mounts and needs root: use sudo", 2
        )
