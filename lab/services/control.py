# SPDX-License-Identifier: Apache-2.0
"""All services together: what depends on what, start, stop, look."""

from collections.abc import Callable, Sequence
from functools import partial

from lab import LabError
from lab.report import Report, Task, run_all
from lab.services import (
    backends,
    cloud,
    compute,
    config,
    images,
    mirror,
    network,
    openstack,
    stand_in,
    tacker,
)
from lab.services.process import Processes, Service
from lab.settings import Settings

#: What makes a service, and the names of what must run before.
_Start = tuple[Callable[[Settings], Service], tuple[str, ...]]
_BACKENDS = (backends.DATABASE, backends.BROKER)
# In the order of their start; they are stopped in the opposite one.
SERVICES: dict[str, _Start] = {
    backends.BROKER: (backends.rabbitmq, ()),
    backends.DATABASE: (backends.mariadb, ()),
    openstack.KEYSTONE: (openstack.keystone, (backends.DATABASE,)),
    openstack.BARBICAN: (openstack.barbican, ()),
    **{
        module.NAME: (partial(stand_in.service, module), ())
        for module in (images, compute, network)
    },
    openstack.HEAT_API: (openstack.heat_api, ()),
    openstack.HEAT_ENGINE: (openstack.heat_engine, _BACKENDS),
    tacker.SERVER: (tacker.server, _BACKENDS),
    tacker.CONDUCTOR: (tacker.conductor, _BACKENDS),
}
#: Not started by ``up``, only by ``restart``.
ON_DEMAND: dict[str, _Start] = {
    tacker.SECOND: (tacker.second_conductor, _BACKENDS),
}
CLOUD = "cloud"
#: Only in a lab that has a mirror. They listen on an address of the cloud's.
MIRROR: dict[str, _Start] = {
    mirror.FILES: (mirror.files, (CLOUD,)),
    mirror.REGISTRY: (mirror.registry, (CLOUD,)),
}
EVERY = {**SERVICES, **MIRROR, **ON_DEMAND}
VIM = "default VIM"


class Control:
    """The services of one lab."""

    def __init__(self, settings: Settings, report: Report) -> None:
        self._settings = settings
        self._report = report
        self._processes = Processes(settings)
        self._ready = settings.run / "ready"

    def is_up(self) -> bool:
        """Whether everything runs as it would be started now."""
        config.write(self._settings)
        return self._ready.exists() and all(
            self._processes.is_current(make(self._settings))
            for make, _ in self._permanent().values()
        )

    def up(self) -> None:
        """Start what does not run, and what would now be started differently.

        :raises LabError: something did not become ready.
        """
        config.write(self._settings)
        self._ready.unlink(missing_ok=True)
        tasks = [self._task(name) for name in self._permanent()]
        tasks.append(self._timed(CLOUD, lambda: cloud.prepare(self._settings)))
        needs = (openstack.KEYSTONE, tacker.SERVER, openstack.BARBICAN)
        tasks.append(self._timed(VIM, tacker.register_vim, needs))
        run_all(tasks)
        self._ready.touch()

    def restart(self, names: Sequence[str], *, kill: bool) -> None:
        """Stop services and start them again, or for the first time.

        :param kill: without giving them time.
        :raises LabError: there is no such service, or it did not become ready.
        """
        self.stop(names, kill=kill)
        chosen = [name for name in EVERY if name in names]
        run_all([self._task(name, chosen) for name in chosen])

    def stop(self, names: Sequence[str] = (), *, kill: bool = False) -> None:
        """Stop services, so that what they store can be used again.

        :param names: default: all.
        :param kill: without giving them time.
        :raises LabError: there is no such service.
        """
        unknown = sorted(set(names) - set(EVERY))
        if unknown:
            raise LabError(
                f"No service {', '.join(unknown)}; there are: {', '.join(EVERY)}", 2
            )
        if not names:
            self._ready.unlink(missing_ok=True)
        for name in reversed(EVERY):
            if name in (names or EVERY) and self._processes.record(name):
                with self._report.step(f"{name} stopped"):
                    self._stop(name, patience=not kill)

    def status(self) -> bool:
        """Print a line for each service; whether all run."""
        total, complete = 0.0, True
        self._report.line(f"  {'SERVICE':<18}{'PROCESSES':>10}{'MiB':>7}{'SINCE':>10}")
        for name in EVERY:
            usage = self._processes.usage(name)
            if usage is None and name not in self._permanent():
                continue
            if usage is None:
                complete = False
                self._report.line(f"  {name:<18}{'stopped':>10}")
                continue
            total += usage.memory
            since = f"{usage.seconds / 60:.0f} min"
            row = f"{usage.processes:>10}{usage.memory:>7.0f}{since:>10}"
            self._report.line(f"  {name:<18}{row}")
        self._report.line(f"  {'together':<18}{'':>10}{total:>7.0f}")
        return complete

    def create_databases(self) -> None:
        """Make the databases as they are in a new lab, and stop again; see seed.py.

        :raises LabError: something failed.
        """
        config.write(self._settings)
        settings, names = self._settings, (backends.DATABASE, openstack.KEYSTONE)
        schemas = (
            ("keystone schema", lambda: openstack.create_keystone_schema(settings)),
            ("heat schema", lambda: openstack.create_heat_schema(settings)),
            ("tacker schema", lambda: tacker.create_schema(settings)),
        )
        run_all(
            [
                self._timed(
                    "database files", lambda: backends.create_mariadb(settings)
                ),
                Task("keys", lambda: openstack.create_keystone_keys(settings)),
                self._task(backends.DATABASE, (), ("database files",)),
                *(
                    self._timed(name, run, (backends.DATABASE,))
                    for name, run in schemas
                ),
                self._task(openstack.KEYSTONE, (), ("keystone schema", "keys")),
                self._timed(
                    "users and roles",
                    openstack.create_identities,
                    (openstack.KEYSTONE,),
                ),
            ]
        )
        for name in reversed(names):
            self._stop(name)

    def _permanent(self) -> dict[str, _Start]:
        """The services that ``up`` starts."""
        return {**SERVICES, **(MIRROR if mirror.is_there(self._settings) else {})}

    def _task(
        self,
        name: str,
        among: Sequence[str] | None = None,
        extra: tuple[str, ...] = (),
    ) -> Task:
        """The start of a service, after those of its needs that are started as well."""
        make, needs = EVERY[name]
        wanted = needs if among is None else [n for n in needs if n in among]

        def start() -> None:
            self._processes.start(make(self._settings))

        return self._timed(name, start, (*wanted, *extra))

    def _timed(
        self, name: str, run: Callable[[], object], needs: tuple[str, ...] = ()
    ) -> Task:
        def timed() -> None:
            with self._report.step(name):
                run()

        return Task(name, timed, needs)

    def _stop(self, name: str, *, patience: bool = True) -> None:
        make, _ = EVERY[name]
        limit = make(self._settings).patience if patience else 0
        self._processes.stop(name, limit)
