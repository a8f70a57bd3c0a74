"""Overlays of stores that are killed again and again: clients have what one engine gives them.

    python -m tests.programs.killed_overlays FOLDER LIVES SEED

Each life is a process of its own, over other links and policies than the last one. It is killed by
SIGKILL: by itself before or after any commit, or by its client at any moment. A command that was
not answered is given again in the next life; what comes twice is known by its ids.
"""

import json
import os
import random
import signal
import sys
import traceback
from pathlib import Path

from stentor.broker import Overlay
from stentor.engine import Engine
from stentor.engine.database import Database
from stentor.errors import StentorError
from stentor.model import Changes, Schema
from stentor.model.record import Move, Publish, Subscribe, Unsubscribe
from stentor.wire.records import record_from_dict, record_to_dict
from tests.broker.test_broker_trees import drawn_record
from tests.support.broker_records import POLICIES, SCHEMA, SECOND, SPACE

BROKERS = ("b0", "b1", "b2", "b3")


def commands(draw):
    """Rounds: subscriptions change, then links carry, then events come, then links carry."""
    homes, number = {}, 0
    for time in range(0, 10**6 * SECOND, SECOND):
        batch = [drawn_record(draw, f"{number + one}", time) for one in range(8)]
        number += 8
        for wanted in (Subscribe | Unsubscribe | Move, Publish):
            for record in batch:
                if isinstance(record, wanted):
                    broker = draw.choice(BROKERS)
                    if not isinstance(record, Publish):
                        id = record.subscription.id if isinstance(record, Subscribe) else record.id
                        broker = homes.setdefault(id, broker)
                    yield draw.choice(("send", "send", "feed")), broker, record_to_dict(record)
                    if draw.random() < 0.3:
                        yield "carry", None, None
            yield "run", None, None


def overlay_of(folder, draw):
    """An overlay of the stores in *folder*, over a tree and with policies that *draw* gives."""
    order = draw.sample(BROKERS, len(BROKERS))
    links = [(order[draw.randrange(one)], order[one]) for one in range(1, len(order))]
    policy = {name: draw.choice(POLICIES) for name in BROKERS}
    files = {name: folder / name for name in BROKERS}
    schema = Schema.declare(SCHEMA)
    return Overlay(BROKERS, links, policy=policy, space=SPACE, schema=schema, stores=files)


def killed_at(commit, after):
    """Let this process be killed when the *commit*-th time something is to be committed."""
    run, left = Database.run, [commit]

    def counted(self, statement, *values):
        if statement != "COMMIT":
            return run(self, statement, *values)
        left[0] -= 1
        if left[0] == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = run(self, statement, *values)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    Database.run = counted


def live(folder, draw, todo, out):
    """A life: what is done of *todo* is written to *out*, a line each, with what clients get."""
    overlay = overlay_of(folder, draw)
    for command, broker, raw in [("run", None, None), *todo]:
        answer, deliveries = None, []
        if command == "run":
            deliveries = overlay.run()
        elif command == "carry":
            overlay.transmit(1)
        else:
            record = record_from_dict(raw, overlay.schema)
            if command == "send":
                overlay.send(broker, [record])
            else:
                answer = overlay.feed(broker, record)
                deliveries = given_by(answer, record)
        os.write(out, (json.dumps(deliveries) + "\n").encode())


def given_by(answer, record):
    """The deliveries that are a part of the *answer* to *record*."""
    match record, answer:
        case Publish(event), list():
            return [(subscription, event.id, True) for subscription in answer]
        case ((Subscribe() | Move()), Changes(added, removed)):
            id = record.subscription.id if isinstance(record, Subscribe) else record.id
            return [(id, event, True) for event in added] + [(id, one, False) for one in removed]
    return []


class Client:
    """What all clients have, and what one engine would have given them."""

    def __init__(self):
        self.engine = Engine(schema=Schema.declare(SCHEMA), clock=None)
        self.has, self.right = {}, {}  # events by subscription, in the end
        self.plain = {True: set(), False: set()}  # events without an end: got, right
        self.until = {}
        self.twice = 0
        self.time = 0

    def expect(self, command):
        """A *command* will come."""
        _, _, raw = command
        if raw is not None and raw["op"] == "publish":
            event = record_from_dict(raw, self.engine.schema).event
            self.until[event.id] = event.until

    def done(self, command, deliveries):
        """A *command* was answered."""
        _, _, raw = command
        if raw is not None:
            record = record_from_dict(raw, self.engine.schema)
            self.time = record.time
            [answer] = self.engine.step([record])
            if isinstance(record, Unsubscribe) and not isinstance(answer, StentorError):
                self.has.pop(record.id, None)
                self.right.pop(record.id, None)
            self._apply(given_by(answer, record), self.right, is_given=False)
        self.given(deliveries)

    def given(self, deliveries):
        self._apply(deliveries, self.has, is_given=True)

    def _apply(self, deliveries, book, *, is_given):
        for subscription, event, added in deliveries:
            if self.until.get(event) is None:
                self.twice += is_given and (subscription, event) in self.plain[is_given]
                self.plain[is_given].add((subscription, event))
                continue
            events = book.setdefault(subscription, set())
            self.twice += is_given and added == (event in events)
            (events.add if added else events.discard)(event)

    def compare(self):
        """What is live, for those who stand, is equal; so is what was not live."""
        for id in self.engine:
            has, right = (
                {event for event in book.get(id, ()) if self.until[event] > self.time}
                for book in (self.has, self.right)
            )
            assert has == right, f"{id} has {has}, not {right}"
        lost, more = self.plain[False] - self.plain[True], self.plain[True] - self.plain[False]
        assert not lost, f"lost: {lost}"
        assert not more, f"not wanted: {more}"


def main(folder, lives, seed):
    draw = random.Random(seed)
    script, todo, client = commands(draw), [], Client()
    load_kernels(folder / "warm", seed)
    for number in range(lives + 1):
        is_last = number == lives
        while len(todo) < 40 or todo[-1][0] != "run":
            todo.append(next(script))
            client.expect(todo[-1])
        done = one_life(folder, draw, todo, client, is_killed=not is_last)
        del todo[:done]
        assert not is_last or not todo
    print(json.dumps({"lives": lives, "twice": client.twice, "plain": len(client.plain[True])}))


def load_kernels(folder, seed):
    """Let this process have compiled code before it forks, so that lives need not load it."""
    folder.mkdir()
    draw = random.Random(seed)
    script = commands(draw)
    for _ in range(6):
        with Path(os.devnull).open("wb") as nothing:
            live(folder, draw, [next(script) for _ in range(20)], nothing.fileno())


def one_life(folder, draw, todo, client, *, is_killed):
    """How many commands of *todo* were answered in a life."""
    life, by_itself = draw.getrandbits(32), draw.random() < 0.7
    commit, after, lines = draw.randrange(1, 40), draw.random() < 0.5, draw.randrange(20)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if is_killed and by_itself:
                killed_at(commit, after)
            live(folder, random.Random(life), todo, writing)
        except BaseException:  # noqa: BLE001
            os.write(writing, ("!" + traceback.format_exc()).encode())
        os._exit(0)
    os.close(writing)
    done = -1  # the first line is of what it begins with
    with os.fdopen(reading, encoding="utf-8") as read:
        for line in read:
            assert not line.startswith("!"), line + read.read()
            if not line.endswith("\n"):
                break  # it was killed while it wrote this
            deliveries = json.loads(line)
            if done >= 0:
                client.done(todo[done], deliveries)
                if todo[done][0] == "run":
                    client.compare()
            else:
                client.given(deliveries)
            done += 1
            if is_killed and not by_itself and done == lines:
                os.kill(child, signal.SIGKILL)  # what it wrote meanwhile counts
    os.waitpid(child, 0)
    return max(done, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
