"""Who and what is in Saltmere just now, and the records of what they do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal, NamedTuple

from stentor.demo.faults import fault
from stentor.demo.interests import interest
from stentor.demo.locations import Metres, a_district, a_location, degrees
from stentor.demo.names import (
    COUPON_TEXTS,
    FIRST_NAMES,
    JOBS,
    LAST_NAMES,
    SHOP_NAMES,
    TRADES,
    Trade,
)

Record = dict[str, Any]
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
                return self._arrive(second)
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

    def _arrive(self, second: float) -> Record:
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
