"""The broker's side of its links, in its own transactions: what is put, received, acknowledged."""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from stentor.broker.broker import LATE
from stentor.broker.greetings import LinkDigest, fingerprint
from stentor.broker.interest import CLIENT
from stentor.broker.messages import (
    AnnounceRanges,
    EventsGone,
    LinkGreeting,
    Message,
    Outgoing,
    about,
    from_json,
    kind_of,
    to_json,
)
from stentor.errors import SettingsError, StentorError
from stentor.model import Event
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe, Update, Withdraw
from stentor.service.links.frames import KnownAttribute, MessageRow
from stentor.service.links.store import TrackedIds
from stentor.service.links.tree import BrokerState, BrokerTree, LinkReport

if TYPE_CHECKING:
    from stentor.service.core import Core
    from stentor.service.links.session import LinkSession

_LOG: Final = logging.getLogger("stentor.service")
#: Of one row, so that a frame stays small.
_MOST_MESSAGES: Final = 500
_MOST_BYTES: Final = 256_000
#: Problems that a link shows.
_MOST_PROBLEMS: Final = 20
_ENCODE: Final = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class LinkAccount:
    """What a link has carried since the start, and what is wrong with it."""

    carried: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    saved: int = 0  # events that did not have to go over it
    unwanted: int = 0  # events that came over it for nothing
    refused: int = 0  # messages that came and were not understood
    problem: str = ""
    conflicts: tuple[str, ...] = ()  # attributes that both use differently
    session: LinkSession | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """What the operator is told."""
        return tuple(one for one in (self.problem, *self.conflicts) if one)[:_MOST_PROBLEMS]


class LinkBook:
    """The links of the broker of *core*; it is used by the thread that owns that."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.broker, self.store = core.broker, core.store
        with self.store.transaction():
            instance = self.store.fact("instance", str)
            if instance is None:
                instance = secrets.token_hex(8)
                self.store.keep_fact("instance", instance)
        self.tree = BrokerTree(self.broker.name, instance)
        self.accounts: dict[str, LinkAccount] = {}
        self.fresh: set[str] = set()  # neighbours for whom something waits since the last look
        self.refusals: dict[str, str] = {}  # why links are refused, by whoever is beyond
        self._said: tuple[Any, ...] = ()
        self._raws: dict[int, dict[str, Any]] = {}  # events that are passed on as they came
        for neighbour in [*self.broker.links]:
            self._go_on(neighbour)
        self.report()

    def _go_on(self, neighbour: str) -> None:
        """Go on with *neighbour* where this broker has stopped."""
        account = self.accounts[neighbour] = LinkAccount()
        ids = self.broker.links[neighbour].live_ids = TrackedIds()
        if neighbour not in self.store.link_queues:
            account.problem = "it was never connected"
            return
        with self.store.transaction():
            held = self.store.holders(neighbour)
            sent = self.broker.resume(neighbour, self.store.announced(neighbour), held)
            ids.taken()
            self.store.keep_holders(neighbour, {id: False for id in held if id not in ids})
            self.put(sent, 1)

    @property
    def is_current(self) -> bool:
        """Whether the store was not opened again since."""
        return self._core.links is self

    def news(self) -> None:
        """Let all neighbours be told what is known of the tree."""
        self.fresh |= set(self.accounts)

    # What goes out.

    def put(self, sent: Iterable[Outgoing], hops: int) -> None:
        """Let what is *sent* wait for its neighbours, within the broker's transaction."""
        by_neighbour: dict[str, list[Message]] = {}
        for to, message in sent:
            by_neighbour.setdefault(to, []).append(message)
        for neighbour, messages in by_neighbour.items():
            if neighbour not in self.store.link_queues:
                continue
            self._put(neighbour, messages, hops)
        for neighbour in self.accounts:
            ids = self.broker.links[neighbour].live_ids
            if isinstance(ids, TrackedIds) and (changes := ids.taken()):
                self.store.keep_holders(neighbour, changes)

    def _put(self, neighbour: str, messages: Sequence[Message], hops: int) -> None:
        account = self.accounts[neighbour]
        part: list[msgspec.Raw] = []
        size = 0
        for message in messages:
            account.carried[kind_of(message)] += 1
            known = self._raws.get(id(message.event)) if isinstance(message, Publish) else None
            raw = _ENCODE(to_json(message) if known is None else known)
            if part and (len(part) >= _MOST_MESSAGES or size + len(raw) > _MOST_BYTES):
                self.store.put_link(neighbour, len(part), _ENCODE((hops, part)))
                part, size = [], 0
            part.append(msgspec.Raw(raw))
            size += len(raw)
        if part:
            self.store.put_link(neighbour, len(part), _ENCODE((hops, part)))
        self.fresh.add(neighbour)
        self._keep_announced(neighbour, messages)

    def _keep_announced(self, neighbour: str, messages: Sequence[Message]) -> None:
        announced = self.broker.links[neighbour].policy.announced
        names: dict[str, None] = {}
        for message in messages:
            match message:
                case Subscribe() | Unsubscribe() | Move() | AnnounceRanges():
                    names[about(message)] = None
                case LinkGreeting():
                    names |= dict.fromkeys(announced)
        if names:
            found = {name: announced.get(name) for name in names}
            self.store.keep_announced(
                neighbour,
                {name: None if one is None else fingerprint(one)[1] for name, one in found.items()},
            )

    def count_saved(self, source: str, events: int, sent: Iterable[Outgoing]) -> None:
        """Take note of how many of the *events* that came from *source* each link was spared."""
        if not events or not self.accounts:
            return
        went = Counter(to for to, message in sent if isinstance(message, Publish | Update))
        for neighbour, account in self.accounts.items():
            if neighbour != source:
                account.saved += max(events - went[neighbour], 0)

    def is_full(self, source: str = CLIENT) -> bool:
        """Whether too much waits for a neighbour other than *source*: then senders are held."""
        limits = self._core.settings.link_queue
        return any(
            queue.bytes >= limits.bytes or queue.queued >= limits.messages
            for neighbour, queue in self.store.link_queues.items()
            if neighbour != source
        )

    # What comes in.

    def receive(self, neighbour: str, rows: Sequence[MessageRow], last: int) -> None:
        """Let what *neighbour* has sent happen, and keep that it has come up to *last*."""
        core, account = self._core, self.accounts[neighbour]
        most = core.settings.hop_limit
        with core.batch() as now:
            for row in rows:
                if row.hops > most:
                    account.refused += len(row.messages)
                    account.problem = f"messages came over more than {most} links: is it a ring?"
                    _LOG.error("link %s: %s", neighbour, account.problem)
                    continue
                messages = self._read(account, neighbour, row, now)
                for segment in _segments(messages):
                    self._run(neighbour, account, segment, row.hops + 1)
                self._raws.clear()
            self.store.received_up_to(neighbour, last)

    def _read(
        self, account: LinkAccount, neighbour: str, row: MessageRow, now: int
    ) -> list[Message]:
        """The messages of *row* at this server's time; what is refused is counted."""
        found: list[Message] = []
        for raw in row.messages:
            try:
                message = from_json(raw, self.broker.schema)
            except StentorError as error:
                self._refuse(account, neighbour, error)
                if raw.get("op") != "greeting":
                    continue
                try:
                    message = self._readable_greeting(raw)
                except StentorError:
                    continue
            account.received[kind_of(message)] += 1
            if isinstance(message, Publish) and message.event.until is None:
                self._raws[id(message.event)] = raw
                found.append(Publish(message.event, now, message.version))
            else:
                found.append(replace(message, time=now))
        return found

    def _readable_greeting(self, raw: dict[str, Any]) -> Message:
        """The greeting *raw* without the interests that cannot be understood here."""
        readable, schema = [], self.broker.schema
        for one in raw.get("told") or ():
            with suppress(StentorError):
                from_json({**raw, "told": [one], "held": (), "versions": (), "gone": ()}, schema)
                readable.append(one)
        return from_json({**raw, "told": readable}, schema)

    def _refuse(self, account: LinkAccount, neighbour: str, error: StentorError) -> None:
        account.refused += 1
        if account.problem != str(error):
            account.problem = str(error)[:500]
            _LOG.warning("link %s: %s", neighbour, account.problem)

    def _run(self, neighbour: str, account: LinkAccount, segment: list[Message], hops: int) -> None:
        core, live = self._core, self.broker.tables.events
        events: dict[str, Event] = {}
        changed: set[str] = set()
        for message in segment:
            match message:
                case Publish(event) | Update(event):
                    events[event.id] = event
                    if isinstance(message, Update) or event.id in live:
                        changed.add(event.id)
                case Withdraw(id):
                    changed.add(id)
                case EventsGone(gone) | LinkGreeting(gone=gone):
                    changed |= {id for id, _, _ in gone}
        is_plain = all(isinstance(one, Publish) and one.version >= 0 for one in segment)
        core.begin_segment({}, {}, changed, events)
        output = self.broker.receive(neighbour, segment, is_checked=is_plain)
        self.store.keep_deliveries(output.stayed, stayed=True)
        account.unwanted += output.unwanted
        self.count_saved(neighbour, len(events), output.sent)
        self.put(output.sent, hops)
        for one in output.answers:
            if isinstance(one, StentorError) and not isinstance(one, LATE):
                self._refuse(account, neighbour, one)
        ended = [one.id for one in segment if isinstance(one, Withdraw)]
        core.see_events(events, ended, [*output.deliveries, *output.stayed])

    def acknowledge(self, neighbour: str, seq: int) -> None:
        """Take note that *neighbour* has kept everything up to *seq*. Cost: no wait for a disk."""
        with self.store.transaction(synced=False):
            self.store.link_acknowledged(neighbour, seq)

    # Epochs.

    def digest(self, neighbour: str) -> LinkDigest:
        """What is held of *neighbour*, over a link that is down until `begin`."""
        if neighbour not in self.broker.links:
            with self.store.transaction():
                self.broker.add_neighbour(neighbour)
                self.broker.links[neighbour].live_ids = TrackedIds()
                self.accounts[neighbour] = LinkAccount()
        self.broker.disconnect(neighbour)
        return self.broker.digest(neighbour)

    def begin(self, neighbour: str, epoch: str, held: LinkDigest, received: int | None) -> None:
        """Begin a new *epoch* with *neighbour*, which has *held* this much.

        Events that are not live and waited are sent again, but for those that it has *received*.
        """
        with self.store.transaction():
            waiting = self._waiting(neighbour, received)
            self.store.begin_link(neighbour, epoch)
            link = self.broker.links[neighbour]
            greetings = self.broker.connect(neighbour, held)
            if isinstance(link.live_ids, TrackedIds):
                link.live_ids.taken()
            self.store.keep_holders(neighbour, dict.fromkeys(link.live_ids, True))
            self.put(greetings, 1)
            self.put([Outgoing(neighbour, one) for one in waiting], 1)
        if waiting:
            _LOG.warning(
                "link %s: a new epoch; %d events go again, and may come twice",
                neighbour,
                len(waiting),
            )

    def _waiting(self, neighbour: str, received: int | None) -> list[Message]:
        queue = self.store.link_queues.get(neighbour)
        if queue is None:
            return []
        decoder = msgspec.msgpack.Decoder(MessageRow)
        found: list[Message] = []
        after = queue.acknowledged if received is None else received
        for row in self.store.link_rows_after(neighbour, after, -1):
            found += [
                replace(from_json(raw, self.broker.schema), time=self.broker.time)
                for raw in decoder.decode(row.body).messages
                if raw.get("op") == "publish" and raw.get("until") is None
            ]
        return found

    def remove(self, neighbour: str) -> None:
        """Be linked with *neighbour* no longer: what it wanted is withdrawn."""
        if neighbour not in self.broker.links:
            raise SettingsError(f"there is no link to {neighbour!r}")
        account = self.accounts[neighbour]
        with self.store.transaction():
            sent = self.broker.remove_neighbour(neighbour)
            self.store.forget_link(neighbour)
            del self.accounts[neighbour]
            self.put(sent, 1)
        if account.session is not None:
            account.session.end(1000, "the link was removed")
        self.report()

    # What is told.

    def schema(self) -> list[KnownAttribute]:
        """The attributes that are known here."""
        schema = self.broker.schema
        kinds = ((name, schema.kind(name)) for name in schema)
        return [
            KnownAttribute(name, None if kind is None else kind.value, schema.where(name))
            for name, kind in kinds
        ]

    def compare(self, neighbour: str, theirs: Iterable[KnownAttribute]) -> tuple[str, ...]:
        """The attributes that *neighbour* uses otherwise, as the operator is told."""
        mine = {one.name: one for one in self.schema()}
        found = []
        for one in theirs:
            own = mine.get(one.name)
            if own is not None and None not in (own.kind, one.kind) and own.kind != one.kind:
                found.append(
                    f"the attribute {one.name!r} is a {own.kind} here ({own.where}), and a "
                    f"{one.kind} at the broker {neighbour!r} ({one.where}): what uses it otherwise "
                    "is refused; rename one of them"
                )
        for line in found:
            _LOG.warning("link %s: %s", neighbour, line)
        return tuple(found)

    def report(self) -> bool:
        """Renew what is said of this broker; whether it has changed."""
        stats = self.broker.stats()
        links = tuple(self._report(neighbour) for neighbour in sorted(self.accounts))
        said = (links, stats["subscriptions"], stats["live events"])
        if said == self._said:
            return False
        self._said = said
        known = self.tree.states.get(self.broker.name)
        version = max(self._core.now(), 0 if known is None else known.version + 1)
        self.tree.note(
            BrokerState(
                name=self.broker.name,
                instance=self.tree.instance,
                version=version,
                links=links,
                subscriptions=stats["subscriptions"],
                live_events=stats["live events"],
            )
        )
        return True

    def _report(self, neighbour: str) -> LinkReport:
        account, policy = self.accounts[neighbour], self.broker.links[neighbour].policy
        queue = self.store.link_queues.get(neighbour)
        return LinkReport(
            to=neighbour,
            up=account.session is not None,
            carried=dict(account.carried),
            saved=account.saved,
            announced=len(policy.announced),
            covered=max(len(policy.interests) - len(policy.announced), 0),
            queued=0 if queue is None else queue.queued,
            problems=account.problems,
        )


def _segments(messages: Sequence[Message]) -> Iterable[list[Message]]:
    """*messages* in runs within which an event is spoken of once: a delivery only has its id."""
    segment: list[Message] = []
    ids: set[str] = set()
    for message in messages:
        if isinstance(message, Publish | Update | Withdraw):
            id = about(message)
            if id in ids:
                yield segment
                segment, ids = [], set()
            ids.add(id)
        segment.append(message)
    if segment:
        yield segment
