"""Draw afternoon.svg: people who walk, coupons that come and go, and who is told; by an engine.

    python docs/pictures/draw_afternoon.py

The picture moves by itself (SMIL), in light and dark, and asks for nothing from outside.
"""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Final

import stentor

WIDTH, HEIGHT, STEPS, SECONDS = 860, 380, 48, 16
TASTES: Final = {"coffee": "☕", "books": "▤", "shoes": "◆", "jazz": "♪"}
STYLE: Final = """
  :root { --ground: #f6f3ec; --street: #e4dfd2; --ink: #23303d; --told: #c2410c;
    --coffee: #92400e; --books: #1d4ed8; --shoes: #047857; --jazz: #7e22ce }
  @media (prefers-color-scheme: dark) { :root { --ground: #171c22; --street: #232b34; --ink: #dbe2ea;
    --told: #fb923c; --coffee: #fbbf24; --books: #7aa2ff; --shoes: #34d399;
    --jazz: #d8a4ff } }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); text-anchor: middle }
"""


class Walker:
    """A person on a closed walk, with a taste and how far they would go for it."""

    def __init__(self, number: int, random: Random) -> None:
        self.id = f"p{number}"
        self.taste = list(TASTES)[number % len(TASTES)]
        self.radius = random.choice([55, 70, 85])
        self._centre = random.uniform(140, WIDTH - 140), random.uniform(110, HEIGHT - 110)
        self._size = random.uniform(50, 120), random.uniform(30, 80)
        self._phase, self._turns = random.uniform(0, math.tau), random.choice([-1, 1])

    def at(self, step: int) -> tuple[float, float]:
        """Where they are at *step*; the last is the first."""
        angle = self._phase + self._turns * math.tau * step / STEPS
        x = self._centre[0] + self._size[0] * math.cos(angle)
        return round(x, 1), round(self._centre[1] + self._size[1] * math.sin(2 * angle), 1)


def timed(name: str, values: list[str], times: list[float], mode: str = "linear") -> str:
    """An animation of the attribute *name*."""
    keys = ";".join(f"{time:.4f}" for time in times)
    return (
        f'<animate attributeName="{name}" dur="{SECONDS}s" repeatCount="indefinite" '
        f'calcMode="{mode}" values="{";".join(values)}" keyTimes="{keys}"/>'
    )


def draw(seed: int = 11) -> str:
    """The picture."""
    random = Random(seed)
    schema = stentor.Schema.declare({"loc": "point", "sells": "string"}, plane=True)
    engine = stentor.Engine("scan", schema=schema, clock=None)
    people = [Walker(number, random) for number in range(9)]
    for one in people:
        text = f"sells = '{one.taste}' AND ST_DWithin(loc, here(), {one.radius})"
        engine.subscribe(one.id, text, at=one.at(0))
    drawn, flashes = [], []
    for number in range(42):
        begin = 1 + number
        stop = min(begin + random.randrange(5, 11), STEPS)
        sells = random.choice(list(TASTES))
        x, y = random.uniform(40, WIDTH - 40), random.uniform(40, HEIGHT - 40)
        told = set()
        for step in range(begin, stop):
            for one in people:
                engine.move(one.id, one.at(step))
            event = {"id": f"{number} {step}", "sells": sells, "loc": [x, y]}
            for id in set(engine.publish(event)) - told:
                told.add(id)
                flashes.append(flash(people[int(id[1:])], step, x, y))
        first, last = begin / STEPS, min(stop / STEPS, 0.9999)
        times = [0.0, first - 0.001, first, last - 0.001, last, 1.0]
        seen = timed("opacity", ["0", "0", "1", "1", "0", "0"], times)
        drawn.append(
            f'<g opacity="0">{seen}<rect x="{x - 13:.1f}" y="{y - 13:.1f}" width="26" height="26" rx="6" '
            f'fill="var(--ground)" stroke="var(--{sells})" stroke-width="2"/>'
            f'<text x="{x:.1f}" y="{y + 5:.1f}" style="fill:var(--{sells})">{TASTES[sells]}</text></g>'
        )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            'aria-label="People walk through a town; when a coupon they want is near, a line leads to it">',
            f"<style>{STYLE}</style>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="var(--ground)"/>',
            *streets(),
            *(walker(one) for one in people),
            *drawn,
            *flashes,
            "</svg>\n",
        ]
    )


def streets() -> list[str]:
    """The ground."""
    across = [f"M0 {y} C 250 {y - 30}, 600 {y + 40}, {WIDTH} {y}" for y in (70, 190, 310)]
    down = [f"M{x} 0 C {x + 30} 120, {x - 30} 260, {x} {HEIGHT}" for x in (130, 340, 540, 740)]
    return [
        f'<path d="{path}" fill="none" stroke="var(--street)" stroke-width="12"/>'
        for path in across + down
    ]


def walker(one: Walker) -> str:
    """A person and the circle around them."""
    points = [one.at(step) for step in range(STEPS + 1)]
    path = "M" + " L".join(f"{x} {y}" for x, y in points)
    return (
        f'<g><animateMotion dur="{SECONDS}s" repeatCount="indefinite" '
        f'calcMode="linear" path="{path}"/>'
        f'<circle r="{one.radius}" fill="var(--{one.taste})" fill-opacity=".08" stroke="var(--{one.taste})" '
        f'stroke-opacity=".55"/><circle r="6" fill="var(--{one.taste})"/></g>'
    )


def flash(one: Walker, step: int, x: float, y: float) -> str:
    """The line from a coupon to who is told of it, for a moment, while they go on."""
    steps = [step, *(step + part for part in range(5))]
    times = [
        0.0,
        max(step / STEPS - 0.001, 0.0),
        *(min(part / STEPS, 0.9998) for part in steps[1:]),
        1.0,
    ]
    ends = [one.at(part % STEPS) for part in (step, *steps, steps[-1])]
    seen = timed("opacity", ["0", "0", "1", "1", "1", ".6", "0", "0"], times)
    moving = "".join(
        timed(name, [str(end[k]) for end in ends], times) for k, name in ((0, "x2"), (1, "y2"))
    )
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" stroke="var(--told)" stroke-width="3" opacity="0" '
        f'stroke-linecap="round">{seen}{moving}</line>'
    )


if __name__ == "__main__":
    Path(__file__).with_name("afternoon.svg").write_text(draw(), encoding="utf-8")
