"""Who and what is in Saltmere just now, what they want, and the records of what they do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal, NamedTuple

from stentor.demo.names import (
    COUPON_TEXTS,
    DISTRICTS,
    FIRST_NAMES,
    JOBS,
    LAST_NAMES,
    PROMENADE,
    SHOP_NAMES,
    TRADES,
    Metres,
    Trade,
    a_district,
    a_location,
    corners,
    degrees,
    outline,
)

Record = dict[str, Any]

RADII: Final = (300, 500, 800, 1000, 1500, 2500)


def interest(random: Random, person: int) -> str:
    """The expression that *person* subscribes with; the first person's has a price."""
    return (TASTES[0] if person == 0 else random.choice(TASTES))(random)


def _bargain(random: Random) -> str:
    trade = random.choice(TRADES)
    most = round(random.choice(trade.goods).high * random.uniform(0.5, 1.0))
    return (
        f"category = '{trade.category}' AND price < {most} "
        f"AND ST_DWithin(loc, here(), {random.choice(RADII)})"
    )


def _keyword_nearby(random: Random) -> str:
    good = random.choice(random.choice(TRADES).goods)
    words = ", ".join(f"'{word}'" for word in good.name.split())
    return f"has_all(text, {words}) AND ST_DWithin(loc, here(), {random.choice(RADII)})"


def _discount_in_a_district(random: Random) -> str:
    district = random.choice(DISTRICTS)
    words = ", ".join(f"'{random.choice(trade.goods).name}'" for trade in random.sample(TRADES, 2))
    box = ", ".join(map(str, corners(district)))
    least = random.randrange(10, 60, 5)
    return (
        f"has_any(text, {words}) AND discount >= {least} AND ST_Within(loc, ST_MakeEnvelope({box}))"
    )


def _window_shopping(random: Random) -> str:
    districts = random.sample(DISTRICTS, 2)
    names = ", ".join(f"'{district.name}'" for district in districts)
    least = random.randrange(10, 40, 5)
    return (
        f"district IN ({names}) AND NOT category = '{random.choice(TRADES).category}' "
        f"AND discount BETWEEN {least} AND {least + 25}"
    )


def _regular_customer(random: Random) -> str:
    return f"shop LIKE '{random.choice(SHOP_NAMES)}%' AND (price <= 10 OR discount > 40)"


def _stroll_along_the_harbour(random: Random) -> str:
    points = ", ".join(f"{x} {y}" for x, y in outline(PROMENADE))
    category = random.choice(TRADES).category
    return (
        f"ST_Contains(ST_GeomFromText('POLYGON(({points}))'), loc) "
        f"AND kind = 'coupon' AND category != '{category}'"
    )


def _looking_for_work(random: Random) -> str:
    job, other = random.sample(JOBS, 2)
    least = round(random.uniform(job.low, job.high))
    return (
        f"kind = 'job' AND weight(pay >= {least}, 2.5) AND "
        f"(weight(role = '{job.role}', 1.5) OR weight(role = '{other.role}', 0.5) "
        f"AND weight(hours <= {random.randrange(10, 40, 5)}, 0.8))"
    )


def _evening_work(random: Random) -> str:
    return (
        f"kind = 'job' AND evenings AND weight(pay > {random.randrange(12, 20)}, 2) "
        f"AND weight(ST_DWithin(loc, here(), {random.choice(RADII)}), 1.2)"
    )


Taste = Callable[[Random], str]
TASTES: Final[tuple[Taste, ...]] = (
    _bargain,
    _bargain,
    _keyword_nearby,
    _keyword_nearby,
    _discount_in_a_district,
    _window_shopping,
    _regular_customer,
    _stroll_along_the_harbour,
    _looking_for_work,
    _evening_work,
)


def fault(random: Random, number: int, time: str, location: list[float]) -> Record:
    """A record that cannot be used, whatever came before it from the same afternoon."""
    return random.choice(FAULTS)(f"bad-{number}", time, location)


def _broken_expression(id: str, time: str, location: list[float]) -> Record:
    return _subscribe(id, time, location, "category = 'books' AND price <")


def _unknown_function(id: str, time: str, location: list[float]) -> Record:
    return _subscribe(id, time, location, "near(loc, 500)")


def _number_compared_with_text(id: str, time: str, location: list[float]) -> Record:
    return _subscribe(id, time, location, "price = 'cheap'")


def _here_without_position(id: str, time: str, location: list[float]) -> Record:
    record = _subscribe(id, time, location, "ST_DWithin(loc, here(), 800)")
    del record["at"]
    return record


def _event_without_id(id: str, time: str, location: list[float]) -> Record:
    return {"op": "publish", "time": time, "kind": "coupon", "price": 4, "loc": location}


def _impossible_location(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, [location[0], location[1] + 100.0], price=12)


def _text_for_a_number(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, location, price="ask inside")


def _nested_object(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, location, shop={"name": "Heron Books", "owner": "E. Dahl"})


def _number_too_large(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, location, price=2**53 + 1)


def _no_instant(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, location, until="closing time")


def _over_before_it_came(id: str, time: str, location: list[float]) -> Record:
    return _publish(id, time, location, until="2026-05-16T10:00:00+02:00")


def _unknown_op(id: str, time: str, location: list[float]) -> Record:
    return {"op": "shout", "id": id, "time": time, "text": "Fresh mussels!", "loc": location}


def _move_to_nowhere(id: str, time: str, location: list[float]) -> Record:
    return {"op": "move", "id": id, "time": time}


def _unknown_person(id: str, time: str, location: list[float]) -> Record:
    return {"op": "move", "id": "nobody", "time": time, "at": location}


def _subscribe(id: str, time: str, location: list[float], expression: str) -> Record:
    return {"op": "subscribe", "id": id, "time": time, "expression": expression, "at": location}


def _publish(id: str, time: str, location: list[float], **attributes: Any) -> Record:
    return {"op": "publish", "id": id, "time": time, "kind": "coupon", "loc": location} | attributes


Fault = Callable[[str, str, list[float]], Record]
FAULTS: Final[tuple[Fault, ...]] = (
    _broken_expression,
    _unknown_function,
    _number_compared_with_text,
    _here_without_position,
    _event_without_id,
    _impossible_location,
    _text_for_a_number,
    _nested_object,
    _number_too_large,
    _no_instant,
    _over_before_it_came,
    _unknown_op,
    _move_to_nowhere,
    _unknown_person,
)


Happening = Literal["arrive", "publish", "move", "leave", "fault"]

OPENING, NOON, EVENING = 11 * 3600.0, 12 * 3600.0, 18 * 3600.0  # seconds of the day
WALKING_SPEED: Final = 1.3  # metres per second
JOB_SHARE: Final = 0.15
KEPT_SHARE: Final = 0.9
#: The last of each so many people is here for a few hours only, and stays where it is.
PEOPLE_PER_VISITOR: Final = 10
MARKET: Final = "Fish Market"


class Shop(NamedTuple):
    """A shop: what it is called, what it sells, where it is."""

    name: str
    trade: Trade
    district: str
    location: Metres


@dataclass(slots=True)
class Walker:
    """A person on foot: where, where to, and since when."""

    id: str
    location: Metres
    target: Metres
    since: float


class Street:
    """Who and what is in the city just now."""

    def __init__(self, random: Random, shops: int) -> None:
        self.random = random
        self.walkers: list[Walker] = []
        self._shops = [self._shop() for _ in range(shops)]
        self._arrived = self._published = self._faults = 0

    def record(self, happening: Happening, second: float) -> Record:
        """The record of what happens at this *second* of the day."""
        match happening:
            case "arrive":
                return self._come(second)
            case "publish":
                shop = self.random.choice(self._shops)
                self._published += 1
                is_job = self.random.random() < JOB_SHARE
                return self._job(shop, second) if is_job else self._coupon(shop, second)
            case "move":
                return self._move(self.random.choice(self.walkers), second)
            case "leave":
                return self._leave(second)
            case "fault":
                self._faults += 1
                location = degrees(self._somewhere())
                return fault(self.random, self._faults, clock(second), location)

    def _come(self, second: float) -> Record:
        random = self.random
        first, last = random.choice(FIRST_NAMES), random.choice(LAST_NAMES)
        walker = Walker(
            f"{first}.{last}.{self._arrived}", self._somewhere(), self._somewhere(), second
        )
        record = {
            "op": "subscribe",
            "id": walker.id,
            "time": clock(second),
            "expression": interest(random, self._arrived),
            "at": degrees(walker.location),
        }
        self._arrived += 1
        if self._arrived % PEOPLE_PER_VISITOR == 0:
            record["until"] = clock(second + random.uniform(1, 4) * 3600)
        else:
            self.walkers.append(walker)
        return record

    def _coupon(self, shop: Shop, second: float) -> Record:
        random = self.random
        good = random.choice(shop.trade.goods)
        discount = random.randrange(5, 75, 5)
        full = random.uniform(good.low, good.high)
        price: Any = round(full * (1 - discount / 100), 2)
        text = random.choice(COUPON_TEXTS).format(
            discount=discount, good=good.name, shop=shop.name, district=shop.district, price=price
        )
        if shop.district == MARKET:  # stalls bargain
            price = {"low": price, "high": round(full, 2)}
        record = {
            "op": "publish",
            "id": f"coupon-{self._published}",
            "time": clock(second),
            "kind": "coupon",
            "category": shop.trade.category,
            "shop": shop.name,
            "district": shop.district,
            "text": text[0].upper() + text[1:],
            "price": price,
            "discount": discount,
            "loc": degrees(shop.location),
        }
        if random.random() < KEPT_SHARE:
            record["until"] = clock(second + random.uniform(0.25, 3) * 3600)
        return record

    def _job(self, shop: Shop, second: float) -> Record:
        random = self.random
        job = random.choice(JOBS)
        return {
            "op": "publish",
            "id": f"job-{self._published}",
            "time": clock(second),
            "kind": "job",
            "role": job.role,
            "shop": job.employer,
            "district": shop.district,
            "text": job.text,
            "pay": round(random.uniform(job.low, job.high), 1),
            "hours": random.randrange(8, 41, 4),
            "evenings": random.random() < 0.4,
            "loc": degrees(shop.location),
            "weights": {"pay": round(random.uniform(1, 2), 1)},
            "until": clock(EVENING),
        }

    def _move(self, walker: Walker, second: float) -> Record:
        walker.location = _walked(
            walker.location, walker.target, WALKING_SPEED * (second - walker.since)
        )
        walker.since = second
        if walker.location == walker.target:
            walker.target = self._somewhere()
        return {
            "op": "move",
            "id": walker.id,
            "time": clock(second),
            "at": degrees(walker.location),
        }

    def _leave(self, second: float) -> Record:
        position = self.random.randrange(len(self.walkers))
        self.walkers[position], self.walkers[-1] = self.walkers[-1], self.walkers[position]
        return {"op": "unsubscribe", "id": self.walkers.pop().id, "time": clock(second)}

    def _shop(self) -> Shop:
        district = a_district(self.random)
        trade = self.random.choice(TRADES)
        name = f"{self.random.choice(SHOP_NAMES)} {trade.sign}"
        return Shop(name, trade, district.name, a_location(self.random, district))

    def _somewhere(self) -> Metres:
        return a_location(self.random, a_district(self.random))


def _walked(location: Metres, target: Metres, metres: float) -> Metres:
    """Where somebody is who has gone so many *metres* from *location* towards *target*."""
    distance = math.dist(location, target)
    if distance <= metres:
        return target
    share = metres / distance
    return (
        location[0] + (target[0] - location[0]) * share,
        location[1] + (target[1] - location[1]) * share,
    )


def clock(second: float) -> str:
    """The *second* of the afternoon's day as a timestamp.

    >>> clock(12 * 3600 + 1.5)
    '2026-05-16T12:00:01.500+02:00'
    """
    millis = min(round(second * 1000), 24 * 3_600_000 - 1)
    minutes, millis = divmod(millis, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"2026-05-16T{hours:02}:{minutes:02}:{millis // 1000:02}.{millis % 1000:03}+02:00"
