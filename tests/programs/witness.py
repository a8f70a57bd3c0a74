"""Write what this version saves, for later ones: `python -m tests.programs.witness FILE`.

A witness is an archive of saved engines, one for each structure, with the answers that each gave.
Once written it is never written again: `tests/test_witnesses.py` opens those of all versions.
"""

import json
import sys
import tempfile
import zipfile
from pathlib import Path
from random import Random

import stentor

#: Short forms of the structures, so that an archive stays small.
INDEXES = [
    "scan",
    "scan layered",
    "mo_tree layers=2 levels=2 event_cells=3",
    "ap_tree",
    "be_star_tree",
    "mics",
]
SCHEMA = {
    "brand": "string",
    "loc": "point",
    "price": "number",
    "sold": "boolean",
    "text": "string",
    "when": "timestamp",
}
WORDS = ["ipad", "phone", "discount", "new", "rent", "flat", "bike", "café"]


def expressions(random: Random) -> list[str]:
    """Some of every kind of predicate."""
    found = []
    for _ in range(120):
        x, y = round(random.uniform(-1, 1), 2), round(random.uniform(-1, 1), 2)
        low = random.randrange(100)
        one, other = random.sample(WORDS, 2)
        triangle = f"{x} {y}, {x + 1} {y}, {x} {y + 1}, {x} {y}"
        kinds = [
            f"price BETWEEN {low} AND {low + 20}",
            f"weight(price < {low}, {random.choice([0.5, 1, 3])})",
            f"brand IN ('{one}', '{other}')",
            f"NOT brand = '{one}'",
            f"brand LIKE '{one[:2]}%'",
            f"has_all(text, '{one}', '{other}')",
            f"has_any(text, '{one}', '{other}')",
            f"ST_Within(loc, ST_MakeEnvelope({x}, {y}, {x + 0.7}, {y + 0.7}))",
            f"ST_DWithin(loc, ST_Point({x}, {y}), 50000)",
            "ST_DWithin(loc, here(), 60000)",
            f"ST_Contains(ST_GeomFromText('POLYGON(({triangle}))'), loc)",
            "sold IS NULL",
            "sold",
            "when < TIMESTAMP '2024-06-01T00:00:00Z'",
        ]
        picked = random.sample(kinds, random.choice([1, 2, 3]))
        found.append(f" {random.choice(['AND', 'AND', 'OR'])} ".join(picked))
    return found


def events(random: Random, count: int) -> list[dict[str, object]]:
    """Events that some of them want."""
    return [
        {
            "id": f"e{number}",
            "brand": random.choice(WORDS),
            "loc": [round(random.uniform(-1, 1), 2), round(random.uniform(-1, 1), 2)],
            "price": random.choice([random.randrange(120), {"low": 5, "high": 30}]),
            "text": " ".join(random.sample(WORDS, 3)),
            "when": f"2024-0{random.randrange(1, 10)}-01T00:00:00Z",
            **({"sold": True} if random.random() < 0.3 else {}),
        }
        for number in range(count)
    ]


def filled(index: str) -> stentor.Engine:
    """An engine with subscriptions that came, moved, ended and went, and live events."""
    random = Random(1)
    engine = stentor.Engine(index, schema=SCHEMA)
    for number, text in enumerate(expressions(random)):
        at = (round(random.uniform(-1, 1), 2), round(random.uniform(-1, 1), 2))
        until = "2999-01-01T00:00:00Z" if number % 4 == 0 else None
        engine.subscribe(f"s{number}", text, at=at, until=until)
    for number in range(0, 120, 10):
        engine.unsubscribe(f"s{number}")
        engine.move(f"s{number + 1}", (0.1, 0.2))
    for event in events(random, 20):
        engine.publish({**event, "id": f"live-{event['id']}"}, until="2999-01-01T00:00:00Z")
    return engine


def answers(engine: stentor.Engine) -> dict[str, object]:
    """What *engine* says of some events, and of a subscriber who comes and moves."""
    seen = events(Random(2), 60)
    came = engine.subscribe("late", "price < 60 AND ST_DWithin(loc, here(), 90000)", at=(0.0, 0.0))
    went = engine.move("late", (0.5, 0.5))
    return {
        "ids": [sorted(engine.publish(event)) for event in seen],
        "best": [[[id, score] for id, score in engine.top(event, 3)] for event in seen],
        "late": [sorted(came.added), sorted(went.added), sorted(went.removed)],
    }


def write(archive: Path) -> None:
    """Save an engine of each structure into *archive*, with its answers."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for index in INDEXES:
            with tempfile.TemporaryDirectory() as home:
                folder = Path(home, "engine")
                engine = filled(index)
                engine.save(folder)
                for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                    packed.write(file, f"{index}/{file.relative_to(folder).as_posix()}")
            packed.writestr(f"{index}.json", json.dumps(answers(engine)))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
