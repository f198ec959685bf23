# SPDX-License-Identifier: Apache-2.0
"""Work in parallel where its order allows."""

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A piece of work.

    :ivar needs: names of tasks that must have ended before.
    """

    name: str
    run: Callable[[], object]
    needs: tuple[str, ...] = ()


def run_all(tasks: Sequence[Task]) -> None:
    """Run tasks, each as soon as what it needs has ended.

    The first exception is raised at once: nothing new is started then, and what still
    runs is left to end with the program.

    :raises ValueError: tasks wait for each other, or for one that is not there.
    """
    waiting = list(tasks)
    done: set[str] = set()
    ended: queue.Queue[tuple[Task, BaseException | None]] = queue.Queue()
    running = 0
    while waiting or running:
        for task in [t for t in waiting if done.issuperset(t.needs)]:
            waiting.remove(task)
            threading.Thread(target=_run, args=(task, ended), daemon=True).start()
            running += 1
        if not running:
            names = ", ".join(task.name for task in waiting)
            raise ValueError(f"these can never start: {names}")
        task, error = ended.get()
        running -= 1
        if error:
            raise error
        done.add(task.name)


def _run(task: Task, ended: "queue.Queue[tuple[Task, BaseException | None]]") -> None:
    try:
        task.run()
    except BaseException as error:
        ended.put((task, error))
    else:
        ended.put((task, None))
