"""What people in Saltmere want: one expression for each taste."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from stentor.demo.locations import corners, outline
from stentor.demo.names import DISTRICTS, JOBS, PROMENADE, SHOP_NAMES, TRADES

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
