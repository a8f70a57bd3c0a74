"""A durable engine that is killed again and again: all that it answered stands.

    python -m tests.programs.killed_engines FOLDER LIVES SEED

Each life is a process of its own, ended by SIGKILL: by itself before or after any statement of its
store, or between any two lines of Stentor. What it had answered is compared with an engine that was
never stopped; the one call that was not answered has happened, or has not.
"""

import json
import os
import random
import signal
import sys
from pathlib import Path

import pyarrow as pa

import stentor
from stentor.engine import Engine, durable
from stentor.engine.database import Database
from stentor.errors import StentorError

IDS = [f"s{number}" for number in range(14)]
EVENTS = [f"e{number}" for number in range(6)]
PACKAGE = str(Path(stentor.__file__).parent)


def point(draw):
    return [float(draw.randrange(6)), float(draw.randrange(6))]


def expression(draw):
    return draw.choice(
        [
            f"price < {draw.randrange(9)}",
            f"price > {draw.randrange(9)} OR tag = 't{draw.randrange(3)}'",
            "ST_DWithin(loc, here(), 200000)",
            f"has_any(text, 'w{draw.randrange(4)}')",
            f"new{draw.randrange(40)} = 1",
        ]
    )


def subscription(draw, time):
    until = draw.choice([None, None, time + draw.randrange(1, 30)])
    labels = draw.choice([None, {"tenant": draw.choice("ab")}])
    given = {"id": draw.choice(IDS), "expression": expression(draw), "at": point(draw)}
    return given | {"until": until, "owner": draw.choice([None, "ana", "bo"]), "labels": labels}


def event(draw, *, live, time):
    given = {"id": draw.choice(EVENTS), "price": draw.randrange(9), "loc": point(draw)}
    given |= {"tag": f"t{draw.randrange(3)}", "text": f"w{draw.randrange(4)}"}
    if draw.random() < 0.2:
        given |= {f"new{draw.randrange(40)}": 1}
    if draw.random() < 0.2:
        given |= {"among": {"tenant": draw.choice("ab")}}
    return given | ({"until": time + draw.randrange(1, 20)} if live else {})


def record(draw, time):
    op = draw.choice(["subscribe", "unsubscribe", "move", "publish", "update", "withdraw", "bad"])
    if op == "subscribe":
        return {"op": op, **subscription(draw, time)}
    if op in ("publish", "update"):
        return {"op": op, **event(draw, live=draw.random() < 0.6, time=time)}
    if op == "move":
        return {"op": op, "id": draw.choice(IDS), "at": point(draw)}
    return {"op": op, "id": draw.choice(IDS if op == "unsubscribe" else EVENTS)}


def call(engine, number, seed):
    """The call of this *number*, and its answer: the same in every process."""
    draw = random.Random(f"{seed} {number}")
    time = number // 3
    kind = draw.choice(["one", "one", "one", "step", "step", "table", "updates", "all", "again"])
    try:
        if kind == "one":
            raw = {**record(draw, time), "time": time}
            op = raw.pop("op")
            return one_call(engine, op, raw)
        if kind == "step":
            records = [{**record(draw, time), "time": time} for _ in range(draw.randrange(1, 6))]
            return [str(one) for one in engine.step(records)]
        if kind == "table":
            rows = [subscription(draw, time) for _ in range(draw.randrange(1, 30))]
            table = pa.table(
                {
                    "id": [
                        f"t{number}-{n}" if draw.random() < 0.7 else draw.choice(IDS)
                        for n in range(len(rows))
                    ],
                    "expression": [row["expression"] for row in rows],
                    "at": [row["at"] for row in rows],
                    "until": [time + draw.randrange(1, 60) for _ in rows],
                    "time": [time] * len(rows),
                }
            )
            return [str(one) for one in engine.subscribe_batch(table)]
        if kind == "updates":
            rows = [event(draw, live=True, time=time) for _ in range(4)]
            return [str(one) for one in engine.update_batch([{**r, "time": time} for r in rows])]
        if kind == "all":
            return engine.unsubscribe_all(owner="ana", time=time)
        return engine.publish({"id": "now", "price": draw.randrange(9)}, time=time)
    except StentorError as error:
        return str(error)


def one_call(engine, op, raw):
    time = raw.pop("time")
    if op == "subscribe":
        id, text = raw.pop("id"), raw.pop("expression")
        return str(engine.subscribe(id, text, time=time, **raw))
    if op == "move":
        return str(engine.move(raw["id"], raw["at"], time=time))
    if op in ("publish", "update"):
        return str(getattr(engine, op)(raw, time=time))
    if op == "bad":
        return str(engine.withdraw("nobody", time=time))
    return str(getattr(engine, op)(raw["id"], time=time))


def picture(engine):
    """All that an engine has."""
    return {
        "subscriptions": {id: engine.get(id) for id in engine},
        "live": {id: engine.event(id) for id in engine.live()},
        "records": engine.stats()["records"],
        "time": engine._state.time,
        "kinds": sorted(f"{name} {engine.schema.kind(name)}" for name in engine.schema),
    }


class Killed:
    """Kills this process at the n-th statement of the store, or at the n-th line."""

    def __init__(self, draw):
        self.lines = draw.randrange(1, 200_000) if draw.random() < 0.3 else None
        self.statements = None if self.lines else draw.randrange(1, 400)

    def start(self):
        if self.lines:
            sys.settrace(self.trace)
            return
        run = Database.run

        def counted(database, statement, *values):
            self.statements -= 1
            if self.statements == 0:
                end()
            cursor = run(database, statement, *values)
            self.statements -= 1
            if self.statements == 0:
                end()
            return cursor

        Database.run = counted

    def trace(self, frame, what, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        self.lines -= what == "line"
        if self.lines == 0:
            end()
        return self.trace


def end():
    os.kill(os.getpid(), signal.SIGKILL)


def live_on(folder, answers, first, known, seed, life):
    """A life: open the folder, say what is there, then make calls until the end."""
    draw = random.Random(f"{seed} life {life}")
    durable.MANY_RECORDS = draw.choice([20, 60, 10_000])
    durable.MANY_AT_CLOSE = 1

    def opened():
        return Engine.open(folder, durable=True, fsync=False, clock=None)

    killed = Killed(draw)
    is_early = draw.random() < 0.3  # opening is killed as well
    if is_early:
        killed.start()
    engine = opened()
    answers.write(json.dumps({"opened": picture(engine)}) + "\n")
    if not is_early:
        killed.start()
    number = first if picture(engine) == known else first + 1
    while True:
        if draw.random() < 0.03:
            engine.close()
            engine = opened()
        answer = call(engine, number, seed)
        answers.write(json.dumps({"number": number, "answer": answer}) + "\n")
        number += 1


def main(folder, lives, seed):
    """How many calls were answered in so many lives; an AssertionError where one was lost."""
    twin = Engine(clock=None)
    answered, in_flight = 0, 0
    for life in range(lives):
        known = picture(twin)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(reading)
                with os.fdopen(writing, "w", buffering=1) as answers:
                    live_on(folder, answers, answered, known, seed, life)
            finally:
                os._exit(1)
        os.close(writing)
        with os.fdopen(reading) as answers:
            said = [json.loads(line) for line in answers if line.endswith("\n")]
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"life {life} of {seed} ended by itself"
        for one in said:
            if "opened" in one:
                if one["opened"] != json.loads(json.dumps(known)):
                    call(twin, answered, seed)  # it had happened, and was not answered
                    answered += 1
                    in_flight += 1
                    assert one["opened"] == json.loads(json.dumps(picture(twin))), (seed, life)
                continue
            answer = call(twin, answered, seed)
            assert one["number"] == answered
            assert one["answer"] == json.loads(json.dumps(answer)), (seed, life, answered)
            answered += 1
    return answered, in_flight


if __name__ == "__main__":
    print(*main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
