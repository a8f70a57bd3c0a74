"""Draw the pictures of the explanations, one SVG each, in light and dark.

    python docs/pictures/draw_ideas.py

They ask for nothing from outside, and are the same at every drawing (tests/docs/test_pictures.py).
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from stentor.encoding.hilbert import HilbertCurve

FOLDER: Final = Path(__file__).parent
STYLE: Final = """
  :root { --ground: #f6f3ec; --card: #fffdf8; --line: #b9b09b; --ink: #23303d; --soft: #6b7280;
    --one: #1d4ed8; --two: #c2410c; --three: #047857; --four: #7e22ce }
  @media (prefers-color-scheme: dark) { :root { --ground: #171c22; --card: #20272f; --line: #56606b; --ink: #dbe2ea;
    --soft: #9aa5b1; --one: #7aa2ff; --two: #fb923c; --three: #34d399; --four: #d8a4ff } }
  text { font: 14px system-ui, sans-serif; fill: var(--ink) }
  .small { font-size: 12px; fill: var(--soft) } .mono { font-family: ui-monospace, monospace; font-size: 12px }
  .middle { text-anchor: middle } .end { text-anchor: end } .bold { font-weight: 600 }
"""


class Drawing:
    """An SVG that grows shape by shape."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size = width, height
        self.title = title
        self.shapes: list[str] = []

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        stroke: str = "line",
        fill: str = "card",
        more: str = "",
    ) -> None:
        """A box; colours are names of the style, `none` or a colour with its opacity in *more*."""
        self.shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" '
            f'stroke="{colour(stroke)}" fill="{colour(fill)}" {more}/>'
        )

    def text(self, x: float, y: float, words: str, kind: str = "", fill: str = "") -> None:
        """Words that begin, or with *middle* are centred, at x."""
        style = f' style="fill: {colour(fill)}"' if fill else ""
        self.shapes.append(
            f'<text x="{x:g}" y="{y:g}" class="{kind}"{style}>{escape(words)}</text>'
        )

    def line(
        self,
        points: list[tuple[float, float]],
        stroke: str = "ink",
        width: float = 1.5,
        arrow: bool = False,
        more: str = "",
    ) -> None:
        """A line through *points*, perhaps with a head at its end."""
        head = ' marker-end="url(#head)"' if arrow else ""
        listed = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.shapes.append(
            f'<polyline points="{listed}" fill="none" stroke="{colour(stroke)}" stroke-width="{width:g}"{head} {more}/>'
        )

    def dot(self, x: float, y: float, fill: str, radius: float = 4) -> None:
        """A filled circle."""
        self.shapes.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{colour(fill)}"/>')

    def boxed(
        self, x: float, y: float, width: float, height: float, *lines: str, stroke: str = "line"
    ) -> None:
        """A box with centred lines; the first is bold."""
        self.rect(x, y, width, height, stroke)
        top = y + height / 2 - 9 * (len(lines) - 1) + 5
        for number, words in enumerate(lines):
            kind = "middle bold" if number == 0 else "middle small"
            self.text(x + width / 2, top + 18 * number, words, kind)

    def write(self) -> str:
        """All of it."""
        width, height = self.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(self.title)}">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n"
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 8 4 0 8z" fill="var(--ink)"/></marker></defs>\n'
            f'<rect width="{width}" height="{height}" rx="10" fill="var(--ground)"/>\n'
            + "\n".join(self.shapes)
            + "\n</svg>\n"
        )


def colour(name: str) -> str:
    """A variable of the style, or *none*."""
    return name if name == "none" else f"var(--{name})"


def architecture() -> Drawing:
    """The data path."""
    d = Drawing(
        860,
        300,
        "The data path: language and wire, model, encoding, index, engine; broker, service and pipeline around it",
    )
    steps = [
        ("language, wire", "text, JSON, Arrow", "→ one model"),
        ("encoding", "model → columns", "offsets + values"),
        ("index", "columns → candidates", "prunes, never decides"),
        ("verify", "candidates → matches", "the last word"),
        ("engine", "records in order", "→ what is reported"),
    ]
    for number, step in enumerate(steps):
        x = 20 + number * 168
        d.boxed(x, 110, 148, 76, *step, stroke="one" if step[0] == "index" else "line")
        if number:
            d.line([(x - 19, 148), (x - 2, 148)], arrow=True)
    d.boxed(
        20, 20, 316, 56, "pipeline", "the same path in Spark's workers, exactly once", stroke="two"
    )
    d.boxed(360, 20, 220, 56, "broker", "a tree that tells each link little", stroke="three")
    d.boxed(604, 20, 236, 56, "service", "sockets, clock and disk for a broker", stroke="four")
    for x in (178, 470, 722):
        d.line([(x, 78), (x, 106)], "soft", 1.2, more='stroke-dasharray="4 4"')
    d.text(
        430, 226, "language/evaluate.py: the definition of a match, slow and obvious", "middle bold"
    )
    d.text(
        430,
        248,
        "every step above must answer what it answers: evaluate → scan → each index → engine → stream, brokers",
        "middle small",
    )
    d.line([(100, 262), (760, 262)], "soft", 1)
    d.text(430, 282, "imports point from right to left only", "middle small")
    return d


def ap_tree() -> Drawing:
    """Keywords or space, whichever tells more."""
    d = Drawing(860, 400, "AP-Tree: at each node either a cut by keywords or a grid of space")
    d.boxed(330, 16, 200, 52, "space node", "an uneven grid", stroke="one")
    for x, width in ((40, 90), (130, 40), (170, 60), (230, 90)):
        d.rect(x, 96, width, 34, "one")
        d.rect(x, 130, width, 22, "one")
    d.rect(180, 104, 70, 38, "two", "two", 'fill-opacity="0.25"')
    d.text(120, 172, "a region goes into every cell it touches", "small")
    d.line([(380, 68), (250, 92)], arrow=True)
    d.boxed(420, 110, 180, 52, "keyword node", "by the first keyword", stroke="three")
    d.line([(450, 68), (505, 106)], arrow=True)
    for number, cut in enumerate(("aa…cat", "cat…ipad", "ipad…zz", "no keyword")):
        d.rect(424 + number * 104, 190, 96, 34, "three")
        d.text(472 + number * 104, 212, cut, "middle mono")
        d.line([(505, 162), (472 + number * 104, 187)], "soft", 1)
    d.boxed(40, 200, 150, 52, "leaf", "few: read one by one")
    d.line([(85, 154), (100, 197)], arrow=True)
    d.boxed(424, 262, 150, 60, "keyword node", "by the second keyword", stroke="three")
    d.boxed(632, 262, 150, 60, "leaf", "subscriptions", "and live events")
    d.line([(576, 226), (510, 259)], arrow=True)
    d.line([(680, 226), (702, 259)], arrow=True)
    d.text(40, 300, "An event goes to the cell of its place and to the", "")
    d.text(40, 320, "cuts of its words; at each node the tree has chosen", "")
    d.text(40, 340, "what is expected to leave fewer to look at.", "")
    d.text(
        40,
        376,
        "cost of a node = Σ over branches: share of events that come there × subscriptions that they meet",
        "small",
    )
    return d


def be_star_tree() -> Drawing:
    """Attributes, then intervals; three buckets."""
    d = Drawing(860, 400, "BE*-Tree: partitioned by attribute, clustered by value; the best first")
    d.boxed(350, 14, 160, 44, "root")
    for number, name in enumerate(("age", "visits", "score")):
        x = 60 + number * 290
        d.boxed(x, 92, 160, 44, name, stroke="one")
        d.line([(430, 58), (x + 80, 89)], "soft")
    d.text(40, 44, "partitioning: one attribute each", "small")
    d.rect(20, 176, 260, 30, "line")
    d.text(150, 196, "18 … 90", "middle mono")
    d.line([(140, 136), (140, 172)], arrow=True)
    d.rect(20, 232, 84, 30, "three")
    d.text(62, 252, "18 … 35", "middle mono")
    d.rect(112, 232, 76, 30, "two")
    d.text(150, 252, "across", "middle mono")
    d.rect(196, 232, 84, 30, "three")
    d.text(238, 252, "40 … 90", "middle mono")
    for x in (62, 150, 238):
        d.line([(150, 206), (x, 229)], "soft", 1)
    d.text(20, 286, "clustering: left and right never overlap, so an", "small")
    d.text(20, 303, "event with one value meets two of three at most", "small")
    d.rect(330, 176, 500, 190, "line")
    d.text(350, 202, "the k best without the others", "bold")
    for number, (name, most) in enumerate(
        (("score: leaf", 0.92), ("age 18…35", 0.71), ("visits: leaf", 0.44), ("age 40…90", 0.38))
    ):
        y = 220 + number * 32
        d.text(350, y + 15, name, "mono")
        d.rect(460, y, 310 * most, 20, "one", "one", 'fill-opacity="0.25"')
        d.text(790, y + 15, f"≤ {most}", "small")
    d.line(
        [(460 + 310 * 0.55, 216), (460 + 310 * 0.55, 348)], "two", 2, more='stroke-dasharray="5 4"'
    )
    d.text(
        350,
        360,
        "the dashed line: k-th best so far, 0.55. What cannot reach it is not opened",
        "small",
    )
    return d


def mo_tree() -> Drawing:
    """Levels of overlapping cells."""
    d = Drawing(
        860,
        380,
        "MO-Tree: intervals in the smallest overlapping cell that holds them, events in disjoint cells",
    )
    left, width = 40, 560

    def cell(low: float, high: float, y: float, stroke: str) -> None:
        d.rect(
            left + low * width, y, (high - low) * width, 20, stroke, "card", 'fill-opacity="0.6"'
        )

    for number in range(7):
        cell(number / 8, number / 8 + 0.25, 40 + (number % 2) * 24, "one")
    d.text(620, 62, "level 1: narrow intervals", "small")
    for number in range(3):
        cell(number / 4, number / 4 + 0.5, 104 + (number % 2) * 24, "three")
    d.text(620, 126, "level 2: wider ones", "small")
    cell(0, 1, 168, "four")
    d.text(620, 183, "level 3: the whole domain", "small")
    for number in range(8):
        cell(number / 8, number / 8 + 0.125, 232, "line")
    d.text(620, 247, "cells of events' values", "small")
    x = left + 0.3 * width
    d.line([(x, 30), (x, 266)], "two", 2)
    d.text(x, 284, "an event at 0.3", "middle", "two")
    d.line([(left + 0.40 * width, 208), (left + 0.48 * width, 208)], "ink", 4)
    d.text(left + 0.49 * width, 213, "a subscription's interval, in one cell", "small")
    d.text(
        40,
        322,
        "Each attribute is a layer, and an item is in one bucket, where its cells cross. An event looks where it stabs,",
        "",
    )
    d.text(
        40,
        342,
        "a subscription that is new or moves looks into the cells of events that it meets: both ways, one structure.",
        "",
    )
    d.text(
        40,
        364,
        "Nothing is ever split or merged: inserting, removing and moving cost the same few steps.",
        "small",
    )
    return d


def mics() -> Drawing:
    """The Hilbert curve of the paper's figures."""
    d = Drawing(860, 420, "MICS: a box in space is a few ranges of numbers along a Hilbert curve")
    curve = HilbertCurve(dimensions=2, bits=3)
    side, left, top = 44, 30, 36
    wanted = {(x, y) for x in range(4, 7) for y in range(2, 6)}
    cells: dict[int, tuple[int, int]] = {}
    for x in range(8):
        for y in range(8):
            ((number, _),) = curve.ranges([(x, y)], [(x, y)]).of(0)
            cells[int(number)] = (x, y)

    def middle(cell: tuple[int, int]) -> tuple[float, float]:
        return left + side * (cell[0] + 0.5), top + side * (7.5 - cell[1])

    for number in range(64):
        x, y = middle(cells[number])
        inside = cells[number] in wanted
        d.rect(
            x - side / 2 + 1,
            y - side / 2 + 1,
            side - 2,
            side - 2,
            "line",
            "two" if inside else "card",
            'fill-opacity="0.3"' if inside else "",
        )
    d.line([middle(cells[number]) for number in range(64)], "one", 2, more='stroke-opacity="0.75"')
    for number in range(64):
        x, y = middle(cells[number])
        d.text(x, y + 14, str(number), "middle small")
    d.text(430, 56, "A subscription is a box …", "bold")
    ranges = curve.ranges([(4, 2)], [(6, 5)]).of(0)
    d.text(430, 78, "here " + "  ".join(f"[{low}, {high}]" for low, high in ranges), "mono")
    d.text(430, 120, "… an event is one number …", "bold")
    d.text(430, 142, "52 is in it, 28 is not: one search in a sorted list", "")
    d.text(430, 184, "… and what a neighbour must be told is one table.", "bold")
    for low, high, name in ((32, 35, "ana"), (45, 46, ""), (47, 49, "ben"), (50, 55, "ana")):
        d.rect(
            430 + (low - 30) * 14,
            206 + 26 * (name == "ben"),
            (high - low + 1) * 14,
            20,
            "three" if name == "ben" else "two",
        )
        d.text(
            430 + (low - 30) * 14 + 4,
            221 + 26 * (name == "ben"),
            f"{low}–{high}" if name else "",
            "small",
        )
    for low, high in ((32, 35), (45, 55)):
        d.rect(
            430 + (low - 30) * 14,
            272,
            (high - low + 1) * 14,
            20,
            "one",
            "one",
            'fill-opacity="0.25"',
        )
        d.text(430 + (low - 30) * 14 + 4, 287, f"{low}–{high}", "small")
    d.text(430, 318, "Ranges that touch become one. What lies inside one of them,", "small")
    d.text(430, 336, "by one subscription or by several together, is not announced.", "small")
    return d


def covering() -> Drawing:
    """Dominance, and the graph."""
    d = Drawing(
        860, 360, "Covering: an interval is a point; whatever lies up and to the right covers it"
    )
    d.line([(60, 300), (60, 40)], arrow=True)
    d.line([(60, 300), (380, 300)], arrow=True)
    d.text(20, 36, "high", "small")
    d.text(330, 320, "−low", "small")
    d.rect(190, 50, 180, 130, "two", "two", 'fill-opacity="0.12"')
    d.dot(190, 180, "two", 6)
    d.text(98, 200, "price in [10, 30]", "small")
    for x, y in ((90, 120), (120, 240), (250, 250), (330, 210), (150, 90)):
        d.dot(x, y, "soft")
    for x, y, words in ((260, 140, "[5, 40]"), (320, 80, "[0, 90]")):
        d.dot(x, y, "three", 6)
        d.text(x + 10, y + 5, words, "small")
    d.text(196, 68, "covers it", "", "two")
    d.boxed(470, 40, 120, 44, "s1: [0, 90]", stroke="three")
    d.boxed(700, 40, 120, 44, "s2: [60, 99]", stroke="three")
    d.boxed(470, 140, 120, 44, "s3: [5, 40]")
    d.boxed(470, 240, 120, 44, "s4: [10, 30]", stroke="two")
    d.line([(530, 84), (530, 136)], arrow=True)
    d.line([(530, 184), (530, 236)], arrow=True)
    d.text(640, 108, "announced: s1, s2", "bold")
    d.text(640, 160, "kept back: s3, s4. A neighbour", "small")
    d.text(640, 178, "that has s1 sends everything", "small")
    d.text(640, 196, "that they want, too", "small")
    d.text(640, 256, "s1 leaves: only its own", "small")
    d.text(640, 274, "children are looked at again", "small")
    return d


def packed() -> Drawing:
    """Three homes."""
    d = Drawing(
        860,
        430,
        "Packed: alternatives with something rare go to lists, with a rare attribute to nodes, the others to blocks",
    )
    d.boxed(20, 175, 150, 60, "subscription", "its alternatives")
    homes = (
        (
            "lists",
            "one",
            "a word, a string, an equal number:",
            "filed under the rarest of them",
            "has something rare",
        ),
        (
            "nodes",
            "four",
            "ranges of attributes that few have:",
            "filed by attribute",
            "a rare attribute",
        ),
        (
            "blocks",
            "three",
            "intervals, boxes, circles: 512 each,",
            "ordered by place and bounds",
            "neither",
        ),
    )
    for number, (name, stroke, first, second, why) in enumerate(homes):
        y = 20 + number * 132
        d.boxed(250, y, 250, 104, name, first, second, stroke=stroke)
        d.line([(170, 205), (246, y + 52)], arrow=True)
        d.text(20 + 10 * (number == 1), (100, 262, 330)[number], why, "small")
    for row in range(2):
        for lane in range(8):
            d.rect(
                535 + lane * 38,
                44 + row * 26,
                34,
                20,
                "one",
                "one",
                f'fill-opacity="{0.15 + 0.1 * ((lane * 5 + row * 3) % 4):.2f}"',
            )
    d.text(535, 36, "a granule: eight entries, one cache line", "small")
    d.text(535, 116, "low × 8, high × 8: cells of 16 bits", "small")
    for row in range(3):
        for lane in range(32):
            d.rect(
                535 + lane * 9.5,
                176 + row * 20,
                8,
                15,
                "four",
                "four",
                f'fill-opacity="{0.15 + 0.1 * ((lane * 7 + row * 5) % 4):.2f}"',
            )
    d.text(535, 168, "a leaf: 32 lanes of one byte for each predicate", "small")
    for row in range(3):
        for column in range(8):
            fill = "two" if (row, column) in {(1, 3), (2, 3)} else "three"
            d.rect(535 + column * 38, 302 + row * 24, 34, 18, fill, fill, 'fill-opacity="0.2"')
    d.text(535, 294, "a k-d tree of blocks; an event opens few of them", "small")
    d.text(
        20,
        416,
        "What lies in a home proves most matches by itself (covered); the rest are candidates for the exact verifier.",
        "small",
    )
    return d


def exactly_once() -> Drawing:
    """A commit is one file."""
    d = Drawing(860, 330, "Exactly once: a batch has happened when its manifest is linked")
    steps = (
        ("read", "workers"),
        ("order", "driver"),
        ("match", "workers"),
        ("write files", "workers"),
        ("manifest", "driver"),
        ("tables", "driver"),
    )
    for number, (name, who) in enumerate(steps):
        x = 20 + number * 140
        d.boxed(x, 60, 120, 56, name, who, stroke="two" if name == "manifest" else "line")
        if number:
            d.line([(x - 19, 88), (x - 2, 88)], arrow=True)
    d.line([(710, 36), (710, 190)], "two", 2, more='stroke-dasharray="6 4"')
    d.text(700, 28, "one file is linked to its name: now the batch has happened", "end bold", "two")
    d.text(360, 150, "killed here: files that no manifest names are removed,", "middle")
    d.text(360, 170, "and the batch is read again, from the same offsets", "middle")
    d.text(724, 144, "killed here: tables", "small")
    d.text(724, 161, "follow from it at", "small")
    d.text(724, 178, "the next start", "small")
    d.rect(20, 214, 820, 92, "line")
    d.text(36, 240, "manifests/00…041.json", "mono")
    d.text(
        230,
        240,
        "state after batch 41: bases, changes since, live events, source offsets, files of the tables",
        "small",
    )
    d.text(36, 264, "manifests/00…042.json", "mono")
    d.text(230, 264, "put only where it is not there yet: of two writers one is refused", "small")
    d.text(36, 288, "work/, segments/, …", "mono")
    d.text(
        230,
        288,
        "names that are never used twice; they count only if the last manifest names them",
        "small",
    )
    return d


DRAWINGS: Final = (
    architecture,
    ap_tree,
    be_star_tree,
    mo_tree,
    mics,
    covering,
    packed,
    exactly_once,
)

if __name__ == "__main__":
    for draw in DRAWINGS:
        (FOLDER / f"{draw.__name__}.svg").write_text(draw().write(), "utf-8")
