"""Draws `earthquakes.csv`: a month of earthquakes as a seismological service would list them.

They are invented, and realistic in what matters to rules: they lie along the plates' borders, are
rarer by a factor of six for each whole magnitude (after Gutenberg and Richter), large ones are
followed by others nearby, and depths are those of their borders. The same file comes out each time.
"""

import csv
import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

#: Name, points of the border as longitude and latitude, share of all, typical depth in km.
BORDERS = [
    ("Japan Trench", [(144.5, 43.0), (143.5, 40.0), (142.0, 37.0), (140.5, 34.0)], 16, 35),
    ("Kuril Trench", [(148.0, 44.5), (153.0, 47.5), (159.0, 51.5)], 7, 40),
    ("Aleutian Trench", [(-178.0, 51.3), (-168.0, 52.5), (-158.0, 54.8), (-150.0, 58.5)], 12, 30),
    ("Sunda Trench", [(95.5, 4.0), (99.0, -1.5), (104.0, -6.5), (112.0, -9.5)], 13, 45),
    ("Peru-Chile Trench", [(-80.5, -8.0), (-75.0, -16.0), (-71.3, -24.0), (-72.5, -34.0)], 14, 50),
    ("Middle America Trench", [(-105.0, 18.5), (-97.0, 15.8), (-90.0, 13.3), (-85.5, 10.0)], 9, 30),
    ("Tonga Trench", [(-173.0, -15.5), (-174.5, -21.0), (-177.0, -28.0)], 11, 120),
    ("San Andreas Fault", [(-124.2, 40.3), (-121.5, 36.8), (-117.5, 34.2), (-115.6, 32.8)], 8, 8),
    ("Hellenic Arc", [(20.8, 38.5), (22.5, 36.0), (26.5, 35.0), (28.5, 36.3)], 5, 20),
    ("Mid-Atlantic Ridge", [(-20.0, 64.0), (-29.5, 55.0), (-30.0, 37.0), (-45.0, 23.0)], 5, 10),
]
COUNT = 1500


def main() -> None:
    """Write the file beside this one."""
    draw = random.Random(1906)
    quakes = []
    while len(quakes) < COUNT:
        name, border, _, depth = draw.choices(BORDERS, weights=[one[2] for one in BORDERS])[0]
        when = draw.uniform(0, 30 * 86_400)
        quakes.append(_quake(draw, name, *_on(draw, border), when, depth, 2.5))
        magnitude = quakes[-1][4]
        for _ in range(int(10 ** (magnitude - 4.8)) if magnitude > 4.8 else 0):
            lon, lat = quakes[-1][2] + draw.gauss(0, 0.3), quakes[-1][3] + draw.gauss(0, 0.3)
            after = when + draw.expovariate(1 / 40_000)
            quakes.append(_quake(draw, name, lon, lat, after, depth, 2.5, magnitude - 1.2))
    quakes = sorted(one for one in quakes if one[0] < 30 * 86_400)[:COUNT]
    start = datetime(2026, 3, 1, tzinfo=UTC)
    with (Path(__file__).parent / "earthquakes.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "time", "latitude", "longitude", "mag", "depth", "place"])
        for number, (when, place, lon, lat, magnitude, depth) in enumerate(quakes):
            time = (start + timedelta(seconds=round(when))).isoformat().replace("+00:00", "Z")
            writer.writerow(
                [
                    f"q{number}",
                    time,
                    f"{lat:.3f}",
                    f"{(lon + 180) % 360 - 180:.3f}",
                    f"{magnitude:.1f}",
                    f"{depth:.0f}",
                    place,
                ]
            )


def _on(draw: random.Random, border: list[tuple[float, float]]) -> tuple[float, float]:
    """A point near the border, longitude and latitude."""
    piece = draw.randrange(len(border) - 1)
    share = draw.random()
    (west, south), (east, north) = border[piece], border[piece + 1]
    return (
        west + share * (east - west) + draw.gauss(0, 0.7),
        south + share * (north - south) + draw.gauss(0, 0.5),
    )


def _quake(
    draw: random.Random,
    name: str,
    lon: float,
    lat: float,
    when: float,
    depth: float,
    least: float,
    most: float = 8.2,
) -> tuple[float, str, float, float, float, float]:
    magnitude = min(least - math.log10(1 - draw.random()) / 0.75, max(most, least))
    far = round(draw.uniform(4, 180))
    side = draw.choice(["N", "NE", "E", "SE", "S", "SW", "W", "NW"])
    return (
        when,
        f"{far} km {side} of the {name}",
        lon,
        lat,
        magnitude,
        max(1, draw.gauss(depth, depth / 3)),
    )


if __name__ == "__main__":
    main()
