"""A broker's neighbours: how they come and go, and what is said when a link comes up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager

from stentor.broker.announcements import Announcer, Link
from stentor.broker.greetings import LinkDigest, bucket, fingerprint, greeting_parts, link_digest
from stentor.broker.interest import Interest, RangeInterest, check_broker_name
from stentor.broker.learning import Learning
from stentor.broker.messages import AnnounceRanges, BrokerOutput, LinkGreeting, Outgoing
from stentor.broker.policies import Policy
from stentor.broker.questions import BrokerQuestions
from stentor.errors import SettingsError
from stentor.index.mics.space import Space
from stentor.model import Schema
from stentor.model.record import Publish, Subscribe, Unsubscribe


class BrokerNeighbours(BrokerQuestions):
    """The methods of `Broker` that are about its links."""

    schema: Schema
    space: Space | None
    _new_policy: Callable[[Schema, Space | None], Policy]
    _announcer: Announcer
    _learning: Learning
    _share: bool
    _transaction: Callable[..., AbstractContextManager[None]]
    _remove_interest: Callable[[str, str, BrokerOutput], None]

    def add_neighbour(self, neighbour: str) -> None:
        """Know *neighbour*, over a link that is down. Cost: everything is put to its policy."""
        check_broker_name(neighbour)
        if neighbour in self.links:
            raise SettingsError(f"{self.name} has the neighbour {neighbour!r} already")
        with self._transaction():
            self.links[neighbour] = Link(self._new_policy(self.schema, self.space))
            self._announcer.introduce(neighbour, self._tables.interests_except(neighbour).values())
            self._store.keep_fact("neighbours", list(self.links))

    def remove_neighbour(self, neighbour: str) -> list[Outgoing]:
        """What to send when *neighbour* is none any more: what it wanted is withdrawn.

        What is not live and was on its way to it waits for `forward_stranded`.
        """
        interests, output = self._link(neighbour).interests, BrokerOutput()
        with self._transaction():
            exact = [name for name, one in interests.items() if isinstance(one, Interest)]
            self._tables.step(neighbour, [Unsubscribe(name, self.time) for name in exact])
            for name in [*interests]:
                self._remove_interest(neighbour, name, output)
            self._tables.strand_forwards(neighbour)
            del self.links[neighbour]
            self._learning.forget_conflicts(neighbour)
            self._store.keep_fact("neighbours", list(self.links))
        return output.sent

    def digest(self, neighbour: str) -> LinkDigest:
        """What this broker holds of *neighbour*, for its `connect`. Cost: 1 µs an interest."""
        link = self._link(neighbour)
        return link_digest(link.interests.values(), link.live_ids, self._tables.events)

    def connect(self, neighbour: str, held: LinkDigest | None = None) -> list[Outgoing]:
        """What to send when the link to *neighbour* has come up, before it is listened to.

        After the greeting, what is not live and was on its way, and is not known to have come.
        With what *neighbour* has *held* of this broker since, its `digest`, only what differs is
        said; then it must be told this broker's own `digest`, of before this call.
        """
        link = self._link(neighbour)
        learned = () if self._share else self._learning.all()
        events = self._tables.events
        if held is None:
            greeting = link.greeting(
                frozenset(events),
                self.time,
                self.space,
                learned,
                events.versions(),
                events.gone(),
            )
            greetings = [greeting]
        else:
            announced = link.policy.announced.values()
            differing = link_digest(announced, link.live_ids, events).differing(held)
            link.up = True
            for id in [id for id in link.live_ids if bucket(id) in differing[1]]:
                link.live_ids.discard(id)
            parts = greeting_parts(announced, events, differing)
            greetings = [
                LinkGreeting(
                    part.interests,
                    part.live_ids,
                    self.time,
                    self.space,
                    learned if number == 1 else (),
                    tuple(part.versions.items()),
                    part.gone,
                    part.buckets,
                    number == len(parts),
                )
                for number, part in enumerate(parts, 1)
            ]
        return [
            *(Outgoing(neighbour, greeting) for greeting in greetings),
            *(Outgoing(neighbour, Publish(one, self.time)) for one in link.forwards),
        ]

    def resume(
        self, neighbour: str, announced: Mapping[str, int], live_ids: Iterable[str]
    ) -> list[Outgoing]:
        """What to send when this broker was opened again, and its link was never given up.

        *neighbour* holds what was *announced*, digests by name, and the live events *live_ids* are
        known to be there, once it has all that was sent before. Cost: what differs is announced.
        """
        link, time = self._link(neighbour), self.time
        link.up = True
        link.live_ids |= {id for id in live_ids if id in self._tables.events}
        wanted = link.policy.announced
        sent: list[Outgoing] = []
        for name, one in wanted.items():
            if announced.get(name) == fingerprint(one)[1]:
                continue
            if isinstance(one, RangeInterest):
                sent.append(Outgoing(neighbour, AnnounceRanges(name, one.ranges, time)))
            else:
                sent.append(Outgoing(neighbour, Subscribe(one.subscription, time)))
        for name in announced:
            if name not in wanted:
                is_exact = self.space is None
                end = Unsubscribe(name, time) if is_exact else AnnounceRanges(name, (), time)
                sent.append(Outgoing(neighbour, end))
        return sent

    def disconnect(self, neighbour: str) -> None:
        """Send *neighbour* nothing until it is connected again; what it wants is not forgotten.

        What is not live and was on its way is: it is too late for it.
        """
        self._link(neighbour).up = False
        if self.links[neighbour].forwards:
            with self._transaction():
                self._tables.drop_forwards(neighbour)

    def forwarded(self, neighbour: str, count: int) -> None:
        """Take note that *neighbour* has kept *count* more of the events that are not live.

        Until then `connect` sends them again. Cost: no wait for the disk.
        """
        self._link(neighbour)
        with self._transaction(synced=False):
            self._tables.drop_forwards(neighbour, max(count, 0))
