"""An overlay and one engine that are fed the same records, compared after each of them."""

from dataclasses import replace

from stentor.broker import Overlay, Store
from stentor.engine import Engine
from stentor.errors import StentorError
from stentor.model import Changes, Event, Subscription
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe, Update, Withdraw, lasting
from stentor.model.values.time import BEGINNING


class Compared:
    """Each client's answer, kept from what it was given, against what one engine would give.

    Links that are down let a client miss events, never get one that it does not want; whatever is
    within reach it has, and once all links are up it has exactly what one engine gives.
    """

    def __init__(
        self,
        links,
        *,
        brokers=(),
        schema,
        policy="covering",
        index="auto",
        space=None,
        choose=lambda count: 0,
    ):
        names = dict.fromkeys([*brokers, *(name for link in links for name in link)])
        self.stores = {name: Store() for name in names}
        self._settings = {"schema": schema, "index": index, "choose": choose}
        self.open(links, policy, space)
        self.overlay.run()
        self.engine = Engine(schema=schema, clock=None)
        self.time = BEGINNING
        self.home = {}  # of each subscription
        self.ends = {}  # of each subscription that ends
        self.published = {}  # live events: where, until when
        self.over = set()  # events that were live
        self.given = {}  # by subscription, the live events that the overlay has given
        self.right = {}  # by subscription, those that one engine has given
        self.homes = {}  # of each event that may be updated
        self.stale = set()  # events that changed while a link was down

    def open(self, links, policy, space):
        self.overlay = Overlay(
            self.stores, links, policy=policy, space=space, stores=self.stores, **self._settings
        )

    def reopen(self, links, policy, space):
        """Let another overlay of the same brokers, joined by *links*, go on from their stores."""
        self.overlay.acknowledge()
        self.open(links, policy, space)
        self._run_until_idle()

    def feed(self, broker, record):
        """Let *record* come to *broker* and to the engine."""
        broker = self._home(broker, record)
        [expected] = self.engine.step([record])
        self.time = self.time if record.time is None else max(self.time, record.time)
        self._pass_time()
        [answer] = self.overlay.send(broker, [record])
        deliveries = self.overlay.run()
        assert isinstance(answer, StentorError) == isinstance(expected, StentorError), answer
        if isinstance(expected, StentorError):
            assert type(answer) is type(expected)
            assert not deliveries
            return
        match record:
            case Publish(event):
                self._published(broker, event, deliveries, expected)
            case Update(event):
                self._updated(broker, lasting(event), deliveries, expected)
            case Withdraw(id):
                self._updated(broker, None, deliveries, expected, id)
            case Subscribe(subscription):
                self.home[subscription.id] = broker
                self.ends[subscription.id] = subscription.until
                self._changed(subscription.id, deliveries, expected)
            case Move(id):
                self._changed(id, deliveries, expected)
            case Unsubscribe(id):
                assert not deliveries
                self._forget(id)
        self.compare()

    def feed_at_once(self, burst):
        """Let records of one time come to brokers while others still travel.

        The answers are equal at last: events without an end are not looked at.
        """
        self.time = max(self.time, burst[0][1].time)
        self._pass_time()
        for broker, records in self._by_broker(burst).items():
            expected = self.engine.step(records)
            answers = self.overlay.send(broker, records)
            for record, answer, right in zip(records, answers, expected, strict=True):
                assert isinstance(answer, StentorError) == isinstance(right, StentorError), answer
                self._expect(broker, record, right)
            self._given(self.overlay.deliveries())
            for record in records:
                if isinstance(record, Unsubscribe):
                    self._forget(record.id)
        self._run_until_idle()

    def _by_broker(self, burst):
        """The records of *burst* for each broker; those of one subscription for the same.

        After an unsubscription the id rests: deliveries of the old one and of a new one could not
        be told apart.
        """
        homes, found, gone = dict(self.home), {}, set()
        for broker, record in burst:
            match record:
                case Unsubscribe(id) | Move(id) | Subscribe(Subscription(id)):
                    if id in gone:
                        continue
                    home = homes.setdefault(id, broker)
                    gone |= {id} if isinstance(record, Unsubscribe) else set()
                case Publish():
                    home = broker
            found.setdefault(home, []).append(record)
        return found

    def _expect(self, broker, record, right):
        """Let one engine have answered *right*."""
        match record, right:
            case Publish(event), list() if event.until is not None:
                self.published[event.id] = (broker, event.until)
                for id in right:
                    self.right.setdefault(id, set()).add(event.id)
            case Subscribe(subscription), Changes(added, removed):
                self.home[subscription.id] = broker
                self.ends[subscription.id] = subscription.until
                self._apply(subscription.id, added, removed)
            case Move(id), Changes(added, removed):
                self._apply(id, added, removed)

    def _home(self, broker, record):
        """Where a record has to come: to its subscription's broker, if that stands."""
        match record:
            case Unsubscribe(id) | Move(id) | Subscribe(Subscription(id)):
                return self.home.get(id, broker)
            case Publish(Event(id)) | Update(Event(id)) | Withdraw(id):
                return self.homes.setdefault(id, broker)
        return broker

    def _apply(self, id, added, removed):
        right = self.right.setdefault(id, set())
        right |= set(added)
        right -= set(removed)

    def _published(self, broker, event, deliveries, expected):
        assert {one.event for one in deliveries} <= {event.id}
        assert all(one.added for one in deliveries)
        got = sorted(one.subscription for one in deliveries)
        assert len(set(got)) == len(got)
        assert set(got) <= set(expected), "a client is given what it does not want"
        near = self.overlay.reach(broker)
        assert set(got) >= {id for id in expected if self.home[id] in near}, "lost"
        if event.until is not None:
            self.published[event.id] = (broker, event.until)
            self.over.discard(event.id)
            for id in expected:
                self.right.setdefault(id, set()).add(event.id)
            self._given(deliveries)

    def _updated(self, broker, event, deliveries, expected, id=None):
        """An update, or where there is no *event* the withdrawal of *id*."""
        id = id if event is None else event.id
        assert {one.event for one in deliveries} <= {id}
        entered, left = (
            sorted(one.subscription for one in deliveries if one.added is added)
            for added in (True, False)
        )
        if self.is_whole():
            assert (entered, left) == (expected.entered, expected.left)
        self.published.pop(id, None)
        if event is not None:
            self.published[id] = (broker, event.until)
            self.over.discard(id)
        for one in expected.entered:
            self.right.setdefault(one, set()).add(id)
        for one in expected.left:
            self.right[one].discard(id)
        for one in deliveries:
            answer = self.given.setdefault(one.subscription, set())
            assert (id in answer) != one.added, f"{id} for {one.subscription} twice"
            (answer.add if one.added else answer.discard)(id)
        if not self.is_whole():
            self.stale.add(id)

    def _changed(self, id, deliveries, expected):
        assert {one.subscription for one in deliveries} <= {id}
        if self.is_whole():
            added = sorted(one.event for one in deliveries if one.added)
            removed = sorted(one.event for one in deliveries if not one.added)
            assert Changes(added, removed) == expected
        self._apply(id, expected.added, expected.removed)
        self._given(deliveries)

    def _given(self, deliveries):
        for subscription, event, added in deliveries:
            assert event not in self.over, "it is over"
            answer = self.given.setdefault(subscription, set())
            if event not in self.published and (added or event not in answer):
                continue
            assert (event in answer) != added, f"{event} for {subscription} twice"
            (answer.add if added else answer.discard)(event)

    def _pass_time(self):
        over = {id for id, (_, until) in self.published.items() if until <= self.time}
        self.over |= over
        for id in over:
            del self.published[id]
        for book in (self.given, self.right):
            for answer in book.values():
                answer.difference_update(over)
        for id, until in list(self.ends.items()):
            if until is not None and until <= self.time:
                self._forget(id)

    def _forget(self, id):
        for book in (self.home, self.ends, self.given, self.right):
            book.pop(id, None)

    def cut(self, number):
        self.overlay.cut(*self._link(number))

    def heal(self, number):
        self.overlay.heal(*self._link(number))
        self._run_until_idle()

    def restart(self, broker):
        self.overlay.restart(broker)
        self._run_until_idle()

    def heal_all(self):
        for number, is_up in enumerate([*self.overlay.links.values()]):
            if not is_up:
                self.heal(number)

    def _run_until_idle(self):
        self._given(self.overlay.run())
        self.compare()

    def _link(self, number):
        links = list(self.overlay.links)
        return links[number % len(links)]

    def compare(self):
        if self.is_whole():
            self.stale.clear()
        reach = {home: self.overlay.reach(home) for home in set(self.home.values())}
        for id, home in self.home.items():
            given, right = self.given.get(id, set()), self.right.get(id, set())
            near = reach[home]
            assert given - self.stale <= right, "a client is given what it does not want"
            assert given >= {event for event in right if self.published[event][0] in near}, "lost"

    def is_whole(self):
        """Whether every broker can reach every other."""
        brokers = self.overlay.brokers
        return self.overlay.reach(next(iter(brokers))) == set(brokers)

    def check(self):
        self.overlay.check()


def renamed(record, number):
    """*record*, an event's with an id that no other has had, unless it may be updated."""
    if isinstance(record, Publish) and (number % 2 or record.event.until is None):
        return replace(record, event=replace(record.event, id=f"{record.event.id} {number}"))
    return record
