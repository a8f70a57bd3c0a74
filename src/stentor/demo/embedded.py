"""The afternoon delivered by one engine in this process."""

from __future__ import annotations

from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

from stentor.cli.screen import progress
from stentor.demo.story import Example, Location, Offer, Story
from stentor.errors import StentorError

if TYPE_CHECKING:
    from stentor.demo.afternoon import Afternoon

#: Records that are handed to the engine at a time.
STEP = 500


def deliver(afternoon: Afternoon) -> Story:
    """What the records of *afternoon* lead to."""
    from stentor.engine import Engine

    engine, telling = Engine(clock=None), _Telling()
    start = perf_counter()
    with progress("Delivering", len(afternoon)) as advance:
        remaining = afternoon.records()
        while records := list(islice(remaining, STEP)):
            for record, answer in zip(records, engine.step(records), strict=True):
                telling.add(record, answer)
            advance(telling.story.records, f"{telling.story.delivered:,} delivered")
    return telling.end(len(engine), perf_counter() - start)


class _Telling:
    """A story in the making."""

    def __init__(self) -> None:
        self.story = Story()
        self._expressions: dict[str, str] = {}
        self._locations: dict[str, Location] = {}

    def add(self, record: dict[str, Any], answer: Any) -> None:
        """Take in a record and its answer."""
        story = self.story
        story.records += 1
        if isinstance(answer, StentorError):
            story.reasons[str(answer).split("\n", 1)[0]] += 1
        elif record["op"] == "publish":
            story.delivered += len(answer)
            story.offers.append(Offer(record["shop"], record["loc"], len(answer)))
            if answer:
                id = answer[0]
                story.example = Example(record, id, self._expressions[id], self._locations.get(id))
        else:
            story.added += len(answer.added)
            story.removed += len(answer.removed)
            if "at" in record:
                self._locations[record["id"]] = record["at"]
            if "expression" in record:
                self._expressions[record["id"]] = record["expression"]

    def end(self, subscriptions: int, seconds: float) -> Story:
        """The whole story."""
        self.story.subscriptions = subscriptions
        self.story.seconds = seconds
        self.story.people = list(self._locations.values())
        return self.story
