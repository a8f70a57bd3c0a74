"""Draw the made-up data of the tutorials: a fleet's day, job ads and candidates, coupons, flats.

    python docs/tutorials/data/draw.py

Seeded: it writes the same files each time, beside itself.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

Place = tuple[float, float]
MINUTE: Final = timedelta(minutes=1)
DAY: Final = datetime(2026, 5, 12, tzinfo=UTC)
BERLIN: Final = (13.40, 52.51)
VIENNA: Final = (16.37, 48.208)


def metres(place: Place, east: float, north: float) -> Place:
    """The place so many metres from *place*."""
    x = place[0] + east / (111_320 * math.cos(math.radians(place[1])))
    return round(x, 5), round(place[1] + north / 110_574, 5)


def between(a: Place, b: Place) -> float:
    """The metres from *a* to *b*, on a map of a town."""
    east = (b[0] - a[0]) * 111_320 * math.cos(math.radians(a[1]))
    return math.hypot(east, (b[1] - a[1]) * 110_574)


def path(a: Place, b: Place) -> list[Place]:
    """A way along streets from *a* to *b*: east or west first, then north or south."""
    return [a, (b[0], a[1]), b]


def along(way: list[Place], done: float) -> Place | None:
    """Where one is on *way* after *done* metres; nothing behind its end."""
    for start, stop in itertools.pairwise(way):
        length = between(start, stop)
        if done < length:
            share = done / length
            x = start[0] + (stop[0] - start[0]) * share
            return round(x, 5), round(start[1] + (stop[1] - start[1]) * share, 5)
        done -= length
    return None


def as_csv(header: str, rows: list[tuple[Any, ...]]) -> str:
    """The text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header.split(","))
    writer.writerows(rows)
    return text.getvalue()


def as_lines(records: list[dict[str, Any]]) -> str:
    """The text of a file of JSON lines."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def clock(minute: float) -> str:
    """The time, so many minutes after midnight."""
    return (DAY + minute * MINUTE).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- a fleet's day ----------------------------------------------------------------------------------

YARD: Final = metres(BERLIN, -6000, 1000)


def customers(draw: Random) -> dict[str, Place]:
    """Forty customers, more of them in the middle of the town."""
    return {
        f"customer {n:02}": metres(BERLIN, draw.gauss(0, 3500), draw.gauss(0, 2500))
        for n in range(1, 41)
    }


def fences(places: dict[str, Place]) -> str:
    """The yard, a zone of low speed and a closed one as polygons; customers and a school as circles."""

    def polygon(name: str, kind: str, corners: list[Place]) -> dict[str, Any]:
        shape = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
        return {"type": "Feature", "properties": {"name": name, "kind": kind}, "geometry": shape}

    def circle(name: str, kind: str, place: Place, radius: int) -> dict[str, Any]:
        properties = {"name": name, "kind": kind, "radius": radius}
        shape = {"type": "Point", "coordinates": place}
        return {"type": "Feature", "properties": properties, "geometry": shape}

    def around(place: Place, *steps: Place) -> list[Place]:
        return [metres(place, east, north) for east, north in steps]

    yard = around(YARD, (-250, -200), (250, -200), (250, 200), (-250, 200))
    old_town = around(BERLIN, (-700, -500), (200, -800), (900, -200), (700, 600), (-500, 700))
    market = around(metres(BERLIN, 2500, 1500), (-300, -300), (300, -300), (300, 300), (-300, 300))
    features = [
        polygon("yard", "yard", yard),
        polygon("old town", "slow", old_town),
        polygon("market", "closed", market),
        circle("school", "slow", metres(BERLIN, -1500, -1200), 400),
        *(circle(name, "customer", place, 150) for name, place in places.items()),
    ]
    lines = ",\n".join(json.dumps(feature) for feature in features)
    return f'{{"type": "FeatureCollection", "features": [\n{lines}\n]}}\n'


def drive(draw: Random, stops: list[Place]) -> Iterator[tuple[float, Place, float, int]]:
    """A position every two minutes of a van that serves *stops*: minute, place, km/h, parcels."""
    minute, place, load = 480 + 2.0 * draw.randrange(30), YARD, 0
    parcels = [draw.randrange(1, 9) for _ in stops]
    load = sum(parcels)
    yield minute, place, 0.0, load
    for stop, handed in zip([*stops, YARD], [*parcels, 0], strict=True):
        way, done = path(place, stop), 0.0
        while True:
            speed = max(8.0, draw.gauss(26, 9))
            done += speed / 3.6 * 120
            minute += 2
            at = along(way, done)
            if at is None:
                break
            yield minute, at, round(speed, 1), load
        place, load = stop, load - handed
        for _ in range(draw.randrange(2, 6)):
            shaken = metres(place, draw.gauss(0, 8), draw.gauss(0, 8))
            yield minute, shaken, 0.0, load
            minute += 2


def fleet() -> dict[str, str]:
    """fleet.csv and fences.geojson."""
    draw = Random(1)
    places = customers(draw)
    rows = []
    for n in range(1, 25):
        stops = draw.sample(sorted(places.values()), draw.randrange(7, 12))
        for minute, (x, y), speed, load in drive(draw, stops):
            rows.append((clock(minute), f"van {n:02}", x, y, speed, load))
    rows.sort()
    header = "time,van,longitude,latitude,speed,parcels"
    return {"fleet.csv": as_csv(header, rows), "fences.geojson": fences(places)}


# -- job ads and candidates --------------------------------------------------------------------------

TRADES: Final[dict[str, tuple[list[str], list[str], int]]] = {
    "data": (
        ["Data engineer", "Data analyst", "Machine learning engineer", "Database administrator"],
        ["python", "sql", "spark", "kafka", "airflow", "pandas", "statistics"],
        68,
    ),
    "web": (
        ["Web developer", "Frontend engineer", "Backend engineer", "Designer"],
        ["typescript", "react", "python", "go", "postgres", "css", "figma"],
        62,
    ),
    "care": (
        ["Nurse", "Paramedic", "Physiotherapist", "Midwife"],
        ["nursing", "intensive care", "paediatrics", "surgery", "geriatrics", "triage"],
        46,
    ),
    "crafts": (
        ["Electrician", "Welder", "Carpenter", "Plumber"],
        ["welding", "wiring", "solar", "heating", "timber", "driving licence"],
        42,
    ),
    "kitchen": (
        ["Cook", "Pastry chef", "Head waiter", "Barista"],
        ["baking", "menus", "vegan", "wine", "coffee", "english"],
        36,
    ),
}
NAMES: Final = (
    "Ada Ali Ana Ben Bo Cem Cleo Dara Edda Eli Emil Eva Finn Gül Hana Ida Ines Jan Jun Kai "
    "Lea Leo Lin Lou Mara Max Mia Mila Nia Nils Nora Ole Olga Omar Pia Rafi Remy Rosa Sam "
    "Sara Sina Tara Theo Tim Tove Uma Vera Wim Yara Zoe"
)
HOUSES: Final = "Alder Birch Cedar Elm Hazel Larch Linden Maple Oak Pine Rowan Willow"


def named(number: int, digits: int) -> str:
    """A person's id."""
    names = NAMES.split()
    return f"{names[number % len(names)]} {number:0{digits}}"


def advert(number: int, draw: Random) -> dict[str, Any]:
    """A job ad."""
    trade = draw.choice(sorted(TRADES))
    titles, skills, pay = TRADES[trade]
    wanted = draw.sample(skills, draw.randrange(2, 5))
    title = draw.choice(titles)
    remote = trade in ("data", "web") and draw.random() < 0.35
    return {
        "id": f"job {number:03}",
        "title": title,
        "text": f"{title} at {draw.choice(HOUSES.split())}: {', '.join(wanted)}"
        + draw.choice(["", ", full time", ", part time", ", nights", ", four days a week"]),
        "skills": wanted,
        "salary": round(draw.gauss(pay, pay / 6)) * 1000,
        "remote": remote,
        "loc": metres(BERLIN, draw.gauss(0, 9000), draw.gauss(0, 7000)),
    }


def weight(draw: Random) -> float:
    """How much something counts."""
    return round(draw.uniform(0.5, 4), 1)


def candidate(number: int, draw: Random) -> dict[str, Any]:
    """Somebody who looks for work: what must hold, and what they would like."""
    _, skills, pay = TRADES[draw.choice(sorted(TRADES))]
    can = draw.sample(skills, 3)
    least = round(draw.gauss(pay * 0.85, pay / 8)) * 1000
    far = draw.choice([5, 10, 20, 40]) * 1000
    place = draw.choice(
        [f"(remote OR ST_DWithin(loc, here(), {far}))", f"ST_DWithin(loc, here(), {far})"]
    )
    likes = " OR ".join(
        [
            f"weight(array_contains(skills, '{can[1]}'), {weight(draw)})",
            f"weight(array_contains(skills, '{can[2]}'), {weight(draw)})",
            f"weight(salary >= {round(least * 1.2)}, {weight(draw)})",
            "weight(salary > 0, 0)",
        ]
    )
    return {
        "id": named(number, 3),
        "expression": f"weight(array_contains(skills, '{can[0]}'), {weight(draw)}) AND salary >= {least} AND {place} AND ({likes})",
        "at": metres(BERLIN, draw.gauss(0, 9000), draw.gauss(0, 7000)),
    }


def jobs() -> dict[str, str]:
    """jobs.jsonl and candidates.jsonl."""
    draw = Random(2)
    return {
        "jobs.jsonl": as_lines([advert(n, draw) for n in range(1, 301)]),
        "candidates.jsonl": as_lines([candidate(n, draw) for n in range(1, 401)]),
    }


# -- an afternoon of coupons -------------------------------------------------------------------------

GOODS: Final = {
    "coffee": ["Espresso and cake", "Two coffees for one", "Iced coffee"],
    "books": ["Paperbacks", "Second-hand books", "Comics and books for children"],
    "shoes": ["Running shoes", "Shoes of last season", "Sandals"],
    "lunch": ["Noodle soup for lunch", "Lunch for two", "Falafel for lunch"],
    "music": ["Jazz records", "Strings and music sheets", "Music lessons"],
}


def coupon(number: int, draw: Random) -> dict[str, Any]:
    """What a shop offers for a while."""
    goods = draw.choice(sorted(GOODS))
    start = 14 * 60 + draw.randrange(0, 110)
    text = draw.choice(GOODS[goods])
    if goods not in text.lower():
        text += f", {goods}"
    return {
        "op": "publish",
        "id": f"coupon {number:03}",
        "time": clock(start),
        "until": clock(start + draw.choice([20, 30, 45, 60])),
        "text": text,
        "discount": draw.choice([10, 20, 30, 50]),
        "loc": metres(VIENNA, draw.gauss(0, 900), draw.gauss(0, 700)),
    }


def coupons() -> dict[str, str]:
    """coupons.jsonl, wishes.jsonl and walks.csv."""
    draw = Random(3)
    wishes, rows = [], []
    for n in range(1, 61):
        first, second = draw.sample(sorted(GOODS), 2)
        name = named(n, 2)
        start = metres(VIENNA, draw.gauss(0, 900), draw.gauss(0, 700))
        wants = draw.choice(
            [
                f"has_any(text, '{first}', '{second}')",
                f"has_all(text, '{first}') AND discount >= 20",
                "discount >= 50",
            ]
        )
        distance = draw.choice([150, 250, 400])
        wish = f"{wants} AND ST_DWithin(loc, here(), {distance})"
        wishes.append(
            {"op": "subscribe", "id": name, "time": clock(840), "expression": wish, "at": start}
        )
        place, way, done = start, [start, start], 0.0
        for minute in range(842, 961, 2):
            done += draw.uniform(60, 160)
            at = along(way, done)
            if at is None:
                goal = metres(VIENNA, draw.gauss(0, 900), draw.gauss(0, 700))
                way, done, at = path(place, goal), 0.0, place
            place = at
            rows.append((clock(minute), name, *place))
    rows.sort()
    offers = sorted((coupon(n, draw) for n in range(1, 121)), key=lambda one: one["time"])
    return {
        "wishes.jsonl": as_lines(wishes),
        "coupons.jsonl": as_lines(offers),
        "walks.csv": as_csv("time,person,longitude,latitude", rows),
    }


# -- flats to let ------------------------------------------------------------------------------------


def flats() -> dict[str, str]:
    """flats.jsonl and alerts.jsonl."""
    draw = Random(4)
    listings, alerts = [], []
    for n in range(1, 201):
        rooms = draw.choice([1, 1, 2, 2, 2, 3, 3, 4])
        extras = draw.sample(["balcony", "garden", "lift", "garage", "quiet", "fireplace"], 2)
        listing = {
            "id": f"flat {n:03}",
            "rooms": rooms,
            "rent": 10 * round(rooms * draw.uniform(32, 60) + 15),
            "text": f"{rooms} room{'s' if rooms > 1 else ''}, {extras[0]}, {extras[1]}",
            "loc": metres(BERLIN, draw.gauss(0, 5000), draw.gauss(0, 4000)),
        }
        listings.append(listing)
    for n in range(1, 101):
        rooms = draw.choice([1, 2, 3])
        wish = f"rooms >= {rooms} AND rent <= {rooms * draw.randrange(350, 600, 50)}"
        extra = draw.choice(["balcony", "garden", "lift", "quiet", ""])
        wish += f" AND has_all(text, '{extra}')" if extra else ""
        wish += f" AND ST_DWithin(loc, here(), {draw.choice([1, 2, 4])}000)"
        place = metres(BERLIN, draw.gauss(0, 5000), draw.gauss(0, 4000))
        alerts.append({"id": named(n, 3), "expression": wish, "at": place})
    return {"flats.jsonl": as_lines(listings), "alerts.jsonl": as_lines(alerts)}


def files() -> dict[str, str]:
    """The text of every file, by name."""
    return fleet() | jobs() | coupons() | flats()


if __name__ == "__main__":
    for name, text in files().items():
        Path(__file__).with_name(name).write_text(text, encoding="utf-8")
