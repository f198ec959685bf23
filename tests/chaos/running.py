# SPDX-License-Identifier: Apache-2.0
"""A campaign from its command line: clusters, record, page, what people see of it."""

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.services.tacker import SECOND
from tests.chaos import catalogue, page, record
from tests.chaos.campaign import Campaign
from tests.chaos.pace import PACES, Pace
from tests.chaos.plan import Step, lines, of_document
from tests.chaos.real_subject import RealSubject
from tests.chaos.record import Record
from tests.chaos.subject import Subject
from tests.integration.cluster import SECRETS
from tests.integration.laboratory import Lab, services
from tests.integration.processes import Watch

#: What a cluster of a campaign is, by the kind of laboratory.
SUBJECTS: Mapping[str, type[Subject]] = {
    catalogue.QUICK: Subject,
    catalogue.REAL: RealSubject,
}


def run(
    path: Path,
    seed: int,
    clusters: list[str],
    steps: Iterable[Step],
    minutes: float,
    lab: str,
) -> int:
    """Carry out a plan; 1 if something did not hold.

    :param path: of the record; the page is beside it.
    :param minutes: after which no new step begins.
    :param lab: which kind of laboratory it is.
    """
    # What is away is not reported at every look.
    logging.getLogger("keystoneauth").setLevel(logging.CRITICAL)
    kept = Record(path, _tell)
    kept.add(record.CAMPAIGN, seed=seed, clusters=clusters, minutes=minutes, lab=lab)
    pace = PACES[lab]
    with _limited(pace), Watch(SECRETS, pause=pace.look) as watch:
        subjects = {name: SUBJECTS[lab](name) for name in clusters}
        campaign = Campaign(seed, subjects, kept, watch)
        try:
            campaign.run(steps, minutes)
        finally:
            for subject in subjects.values():
                subject.close()
    html = path.with_suffix(".html")
    html.write_text(page.render(record.read(path)))
    print(f"{campaign.violations} violations. Record: {path}, page: {html}")
    return 1 if campaign.violations else 0


@contextlib.contextmanager
def _limited(pace: Pace) -> Iterator[None]:
    """The driver's limits for faults, in its configuration."""
    with Lab.configured("k8s_mgmt", **pace.limits):
        # Where an earlier campaign was killed, its second one works beside.
        services("stop", "--kill", SECOND)
        Lab.kill_conductor()
        try:
            yield
        finally:
            services("stop", "--kill", SECOND)
            Lab.kill_conductor()


def _tell(event: dict[str, Any]) -> None:
    """A line for the terminal, of what people want to see."""
    match event["event"]:
        case record.STEP:
            (text,) = lines([of_document(event["plan"])])
            print(text, flush=True)
        case record.OUTCOME:
            verbs = f", {' '.join(event['verbs'])}" if event.get("verbs") else ""
            seconds = event["seconds"]
            print(f"      {event['outcome']}{verbs}, {seconds} s", flush=True)
        case record.VIOLATION | record.FINDING:
            print(f"      {event['event'].upper()}: {event['text']}", flush=True)
