"""One broker: message in, messages out.

    client ─┐                       ┌─▶ client: deliveries
            ├─▶ receive ─▶ tables ──┤
 neighbour ─┘                 │     └─▶ neighbour: events that it wants, each once
                              └─▶ a policy for each other link ─▶ what that neighbour is announced

One engine holds what the clients and what the neighbours want, so that an event is matched once.
Ranges that neighbours want are looked up beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeGuard

from stentor.broker.announcements import Announcer, Link
from stentor.broker.greetings import bucket
from stentor.broker.interest import (
    CLIENT,
    AnyInterest,
    Interest,
    Names,
    RangeInterest,
    check_broker_name,
    is_among,
)
from stentor.broker.learning import Learning, joined_schema
from stentor.broker.messages import (
    Announcement,
    AnnounceRanges,
    BrokerOutput,
    Delivery,
    EventsGone,
    Learned,
    LinkGreeting,
    Message,
    Outgoing,
    about,
    check_time,
    record_error,
)
from stentor.broker.neighbours import BrokerNeighbours
from stentor.broker.policies import policy_of
from stentor.broker.store import NoStore, Store, check_settings
from stentor.broker.tables import Tables
from stentor.engine.batch import listed
from stentor.engine.clock import Clock, MostAhead
from stentor.engine.report import Answer
from stentor.errors import (
    AlreadyOverError,
    DuplicateEventError,
    StentorError,
    UnknownIdError,
)
from stentor.index.mics.space import Space
from stentor.model import Changes, EventChanges, Schema
from stentor.model.record import (
    EventRecord,
    Move,
    Publish,
    Record,
    Subscribe,
    Unsubscribe,
    Update,
    Withdraw,
    lasting,
)
from stentor.model.values.time import BEGINNING

#: These refuse a record, but not its time; between brokers they are no mistake.
LATE = (AlreadyOverError, DuplicateEventError, UnknownIdError)


class Broker(BrokerNeighbours):
    """A broker called *name*, with clients and neighbours.

    *policy* decides what its links are announced, *index* names the structure that matches, *space*
    is what the ranges on links are about, one for the whole overlay. Ids of subscriptions are the
    clients' own; ids of live events are unique in the whole overlay. With a *store* it goes on
    where the broker of that name has stopped. No time of a client's record may be further ahead of
    the broker's than *most_ahead*; with a *clock*, of the clock, nor may a neighbour's.
    What its schema learns travels to the neighbours, unless the brokers *share* one.

    Where a store fails, or a call is interrupted, it refuses everything until it is opened again.
    """

    def __init__(
        self,
        name: str,
        *,
        policy: str = "covering",
        index: str = "auto",
        schema: Schema | None = None,
        share: bool = False,
        space: Space | None = None,
        store: Store | None = None,
        clock: Callable[[], float] | None = None,
        most_ahead: MostAhead = "auto",
    ) -> None:
        check_broker_name(name)
        check_settings(schema, space, store)
        self.name, self.space = name, space
        self.time = BEGINNING
        self.links: dict[str, Link] = {}
        if not share or schema is None:
            schema = joined_schema(schema, {} if store is None else {name: store.schema()})
        self.schema = schema
        self._new_policy = policy_of(policy)
        self._new_policy(self.schema, space)  # what is wrong with it is said at once
        self._store = NoStore() if store is None else store
        self._failure = ""  # why it refuses everything
        self._clock, self._has_clock = Clock(clock, most_ahead), clock is not None
        names = Names()
        self._tables = Tables(name, index, self.schema, space, self.links, names, self._store)
        self._announcer = Announcer(self.links, names, self.schema, space)
        self._learning, self._share = Learning(name, self.schema), share
        self.conflicts = self._learning.conflicts
        if store is not None:
            with store.transaction():
                self._restore(store)
        if self._learning.news():  # greetings have all; from now on only what is new is sent
            self._store.keep_fact("schema", self.schema.to_dict())

    # Messages.

    def receive(
        self, source: str, messages: Sequence[Message], *, is_checked: bool = False
    ) -> BrokerOutput:
        """What *messages* from *source*, a neighbour or CLIENT, lead to, in order.

        An event is answered with the clients here who want it, what is refused with its error; that
        changes nothing. All of it is kept when this returns. *is_checked* says that `wire` has made
        them with this broker's schema just now, at its own time. Cost: one step of the engine.
        """
        self._check_usable()
        if not is_among(source, (CLIENT,)):
            self._link(source)
        messages, output = [*listed(messages, "messages are in a list")], BrokerOutput()
        with self._transaction():
            self._receive(source, messages, output, is_checked)
        return output

    def strand(self) -> None:
        """Let all that is not live and is on its way wait for `forward_stranded`.

        For a broker that is opened again among others: who wants it is known when all have greeted.
        """
        if forwarding := [one for one, link in self.links.items() if link.forwards]:
            with self._transaction():
                for neighbour in forwarding:
                    self._tables.strand_forwards(neighbour)

    def forward_stranded(self) -> BrokerOutput:
        """What events lead to that were on their way: as from a client, once all have greeted."""
        self._check_usable()
        output = BrokerOutput()
        if stranded := [*self._tables.stranded]:
            with self._transaction():
                again = [Publish(event, self.time) for event in stranded]
                self._receive(CLIENT, again, output, is_checked=False)
                self._tables.drop_forwards(CLIENT)
        return output

    def _receive(
        self, source: str, messages: Sequence[Message], output: BrokerOutput, is_checked: bool
    ) -> None:
        records: list[Record] = []
        queued: set[str] = set()
        time = self.time  # when *records* have come
        for message in messages:
            mistake = None if is_checked else self._record_error(source, message, time)
            if mistake is not None:
                self._apply(source, records, output)
                output.answers.append(mistake)
                if isinstance(message, LinkGreeting) and source != CLIENT:
                    self.links[source].up = False
                continue
            time = time if message.time is None else max(time, message.time)
            match message:
                case AnnounceRanges() | EventsGone() | LinkGreeting() | Learned():
                    self._apply(source, records, output)
                    self._handle_announcement(source, message, output)
                case Publish() | Update() | Withdraw() if source != CLIENT:
                    self._queue_event(source, message, records, queued, output)
                case _:
                    records.append(message)
        self._apply(source, records, output)
        output.sent += self._announcer.flush(self.time)
        output.numbers = self._store.keep_deliveries(output.deliveries)
        self._announce_learned(source, output)

    def _queue_event(
        self,
        source: str,
        message: EventRecord,
        records: list[Record],
        queued: set[str],
        output: BrokerOutput,
    ) -> None:
        """Let a neighbour's *message* be among *records*, unless it says nothing new.

        *queued* are the ids of the events among them.
        Where something is known of a live event, all that came before happens first.
        """
        if self._store.keeps_links and self._is_late(message):
            message = Publish(replace(message.event, until=None), message.time)
        id, events = about(message), self._tables.events
        if not records:
            queued.clear()
        is_known = events.version(id) >= 0 or id in queued
        queued.add(id)
        if isinstance(message, Withdraw) or (message.event.until is not None and is_known):
            self._apply(source, records, output)
            self._pass_time(self.time if message.time is None else message.time, output)
            if mistake := self._tables.stale(source, message):
                output.answers.append(mistake)
                return
            if isinstance(message, Publish) and id in events:
                message = Update(message.event, message.time, message.version)
        records.append(message)

    def _is_late(self, message: EventRecord) -> TypeGuard[Publish | Update]:
        """Whether an event has ended on its way: who wants it has a right to it all the same."""
        if isinstance(message, Withdraw) or message.event.until is None:
            return False
        now = self.time if message.time is None else max(self.time, message.time)
        return message.event.until <= now and self._tables.is_news(message)

    def undelivered(self) -> dict[int, Delivery]:
        """What clients have not acknowledged, by number; a broker that died gives it again."""
        self._check_usable()
        return self._store.deliveries()

    def acknowledge(self, numbers: Iterable[int]) -> None:
        """Take note that clients have these; where the machine loses power they may come again."""
        with self._transaction(synced=False):
            self._store.forget_deliveries(numbers)

    def pass_time(self, time: int) -> list[Outgoing]:
        """What to send when it has become *time*: what is over is withdrawn."""
        check_time(time, optional=False)
        output = BrokerOutput()
        with self._transaction():
            self._pass_time(time, output)
        return output.sent

    def close(self) -> None:
        """Let go of the store."""
        self._failure = self._failure or "it was closed"
        self._store.close()

    @contextmanager
    def _transaction(self, *, synced: bool = True) -> Iterator[None]:
        """Keep what happens within in the store, all of it or nothing.

        Where it fails, this broker is ahead of its store, and refuses everything from then on.
        """
        self._check_usable()
        try:
            with self._store.transaction(synced=synced):
                yield
                if synced:
                    self._store.keep_fact("time", self.time)
        except BaseException as error:
            self.fail(error)
            raise

    def _record_error(self, source: str, message: Message, time: int) -> StentorError | None:
        """Why *message* of *source*, which comes when it is *time*, is refused."""
        if mistake := record_error(source, message, self.schema, self.space):
            return mistake
        said = message.time
        # A neighbour has looked at its clients' times; only with a clock we know it better.
        is_limited = source == CLIENT or self._has_clock
        if said is None or not is_limited or self._clock.allows(said, time):
            return None
        return self._clock.refusal(about(message), said, time)

    def _announce_learned(self, source: str, output: BrokerOutput) -> None:
        """Keep what was learned from *source*, and send it to the others before all else."""
        if not (news := self._learning.news()):
            return
        self._store.keep_fact("schema", self.schema.to_dict())
        others = [one for one, link in self.links.items() if link.up and one != source]
        if not self._share:
            output.sent[:0] = [Outgoing(other, Learned(news, self.time)) for other in others]

    def _apply(self, source: str, records: list[Record], output: BrokerOutput) -> None:
        """Let *records* of *source* come, in one step; none are left."""
        if not records:
            return
        timed = [self._timed(record) for record in records]
        records.clear()
        answers = self._tables.step(source, timed)
        routes = self._tables.routes(timed)
        for record, answer, ranged in zip(timed, answers, routes, strict=True):
            refused = isinstance(answer, StentorError)
            if record.time is not None and (not refused or isinstance(answer, LATE)):
                self._pass_time(record.time, output)
            output.answers.append(self._apply_one(source, record, answer, ranged, output))
        output.sent += self._announcer.flush(self.time)

    def _apply_one(
        self, source: str, record: Record, answer: Answer, ranged: list[str], output: BrokerOutput
    ) -> Answer:
        """The answer to *record* after what the engine's *answer* and *ranged* links call for."""
        match record, answer:
            case Publish(), list(keys):
                return self._tables.forward(source, record, keys, ranged, self.time, output)
            case ((Update() | Withdraw()), EventChanges()):
                return self._tables.forward_update(
                    source, record, answer, ranged, self.time, output
                )
            case Publish(event), _:
                self._tables.note_holder(source, event)
            case ((Unsubscribe(name) | Move(name)), UnknownIdError()):
                return UnknownIdError(f"no subscription has the id {name!r}", id=name)
            case ((Subscribe() | Unsubscribe() | Move()), Changes(added)):
                if source == CLIENT:
                    self._client_changed(record, answer, output)
                else:
                    self._neighbour_changed(source, record, added, output)
        return answer

    def _handle_announcement(
        self, source: str, message: Announcement, output: BrokerOutput
    ) -> None:
        """Let *source* want other ranges, other things altogether, or have learned something."""
        if isinstance(message, LinkGreeting):
            link = self.links[source]
            if mistake := link.greeting_error(self.name, source, self.space, message):
                output.answers.append(mistake)
                link.up = False
                return
            if message.learned or message.buckets is None:
                self._learning.forget_conflicts(source)
        self._pass_time(message.time, output)
        if isinstance(message, LinkGreeting | Learned):
            output.answers += self._learning.learn(source, message.learned).values()
        if isinstance(message, AnnounceRanges):
            self._ranges_changed(source, message, output)
        elif isinstance(message, EventsGone | LinkGreeting):
            self._tables.end_events(source, message.gone, self.time, output)
        if isinstance(message, LinkGreeting):
            self._greeted(source, message, output)

    def _client_changed(
        self, record: Subscribe | Unsubscribe | Move, changes: Changes, output: BrokerOutput
    ) -> None:
        """Keep a client's change, answer it from the live events, and announce it."""
        id = record.subscription.id if isinstance(record, Subscribe) else record.id
        for events, added in ((changes.added, True), (changes.removed, False)):
            output.deliveries += [Delivery(id, event, added) for event in events]
        if isinstance(record, Unsubscribe):
            self._tables.remove_client(id)
            output.sent += self._announcer.withdraw(CLIENT, self._tables.name_of(id), self.time)
        else:
            self._announcer.announce(CLIENT, self._tables.insert_client(record))

    # Neighbours.

    def _neighbour_changed(
        self,
        source: str,
        record: Subscribe | Unsubscribe | Move,
        live: Iterable[str],
        output: BrokerOutput,
    ) -> None:
        """Keep a neighbour's change, send it the *live* events that it wants now, announce it."""
        self._tables.send_live(live, source, self.time, output)
        match record:
            case Unsubscribe(name):
                self._remove_interest(source, name, output)
                return
            case Subscribe(subscription):
                interest = Interest(subscription.id, subscription)
            case Move(name, at):
                known = self.links[source].interests[name]
                assert isinstance(known, Interest), "the engine knows it, so it is no ranges"
                interest = known.moved(at)
        self._insert_interest(source, interest)

    def _ranges_changed(self, source: str, announced: AnnounceRanges, output: BrokerOutput) -> None:
        """Let the neighbour *source* want ranges, or none, under a name."""
        name, ranges = announced.name, announced.ranges
        known = self.links[source].interests.get(name)
        if isinstance(known, Interest):
            self._tables.step(source, [Unsubscribe(name, self.time)])
        if ranges:
            live = self._tables.events.within(ranges)
            self._tables.send_live(live, source, self.time, output)
            self._insert_interest(source, RangeInterest(name, ranges))
        elif known is not None:
            self._remove_interest(source, name, output)

    def _greeted(self, source: str, greeting: LinkGreeting, output: BrokerOutput) -> None:
        """Let *source* want what it says now, and send it the live events that it lacks."""
        link, events = self.links[source], self._tables.events
        interests = {one.name: one for one in greeting.interests}
        held = {**dict.fromkeys(greeting.live_ids, 0), **dict(greeting.versions)}
        self._tables.note_holders(source, held)
        names = [*link.interests]
        if greeting.buckets is not None:
            said = frozenset(greeting.buckets)
            names = [name for name in names if bucket(name) in said] if said else []
            if greeting.is_last and any(id not in link.live_ids for id in events):
                # It may lack what it wants as before: all of it is asked again.
                kept = {one: link.interests[one] for one in link.interests.keys() - set(names)}
                interests, names = {**kept, **interests}, [*link.interests]
        wanted, mistakes = self._tables.replace_interests(source, names, interests, self.time)
        output.answers += mistakes.values()
        for interest in (one for name, one in interests.items() if name not in mistakes):
            if link.interests.get(interest.name) != interest:
                self._insert_interest(source, interest)
        for name in names:
            if name not in interests or name in mistakes:
                self._remove_interest(source, name, output)
        live = (id for id in self._tables.events if id in wanted)
        self._tables.send_live(live, source, self.time, output)

    def _insert_interest(self, source: str, interest: AnyInterest) -> None:
        self._tables.insert_interest(source, interest)
        self._announcer.announce(source, interest)

    def _remove_interest(self, source: str, name: str, output: BrokerOutput) -> None:
        """Let *source* want nothing under *name*; the engine has it no longer."""
        self._tables.remove_interest(source, name)
        output.sent += self._announcer.withdraw(source, name, self.time)

    # Time, state.

    def _pass_time(self, time: int, output: BrokerOutput) -> None:
        """Let it be *time*, if it is not later already; what is over by then goes."""
        self.time = max(self.time, time)
        self._tables.drop_ended_events(self.time)
        for id in self._tables.ended_clients(self.time):
            output.sent += self._announcer.withdraw(CLIENT, self._tables.name_of(id), self.time)

    def _timed(self, record: Record) -> Record:
        """*record* at its time, or the broker's own where that is later."""
        if isinstance(record, Update):
            record = replace(record, event=lasting(record.event))
        if record.time is not None and record.time >= self.time:
            return record
        return replace(record, time=None if self.time == BEGINNING else self.time)

    def _restore(self, store: Store) -> None:
        """Take over the state that is kept in *store*; every link is down."""
        store.belong_to(self.name)
        self.time = store.time()
        with store.reading("the fact 'neighbours'"):
            for neighbour in store.fact("neighbours", list[str]) or ():
                check_broker_name(neighbour)
                self.links[neighbour] = Link(self._new_policy(self.schema, self.space))
        self._tables.restore(store, self.time)
        for neighbour in self.links:
            self._announcer.introduce(neighbour, self._tables.interests_except(neighbour).values())
        store.deliveries()  # what is wrong with them is said now
