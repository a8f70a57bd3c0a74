"""AP+-Tree, moving subscriptions: Figures 19 to 27 (section 5.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stentor_lab.report import number
from stentor_lab.reproduce.claims import (
    All,
    At,
    Claim,
    Grows,
    Less,
    Panels,
    Proportional,
    Rises,
    Slower,
)
from stentor_lab.reproduce.experiment import Experiment
from stentor_lab.reproduce.keyword_data import GN
from stentor_lab.reproduce.papers.ap_tree_journeys import (
    AP,
    FIXED,
    RIVALS,
    areas,
    details,
    measure_mobility,
    measure_velocity,
    on_sets,
    sizes,
    variants,
)
from stentor_lab.reproduce.papers.ap_tree_regions import SAFE, safe_rates, safe_sizes

#: Also with the words of GN, where a figure has both.
_BOTH: Final = ("msp", f"msp {GN}")


_LARGER: Final = (
    "Few nodes are built anew among few subscribers: measured once with 20,000 on Oldenburg's "
    "roads, 1,024 moves at a time, some 155 nodes were at each timestamp, at 90–290 µs a move."
)


def _nodes(key: str) -> Callable[[Panels], str]:
    """What building nodes anew costs, from the curves of the panel *key*."""

    def told(panels: Panels) -> str:
        panel = panels[key]
        moving, fixed = (panel.curve(name).points[-1].value for name in (AP, FIXED))
        return (
            f"Tested: where no node is built anew it takes {number(fixed)}, otherwise "
            f"{number(moving)}, at the last point ({panel.y}). {_LARGER}"
        )

    return told


def _leads(panels: tuple[str, ...] = _BOTH) -> All:
    return All(tuple(Less(one, AP, RIVALS) for one in panels))


MOVING: Final = (
    Experiment(
        "19",
        "message insertion and location update",
        "contender",
        "MI and SLU time",
        "`hold` and `move` alone",
        details,
        (
            Claim(
                "IQ+, RQ+ and AP+ insert messages at a higher cost than SS and KK",
                All(
                    tuple(
                        Less("mi", grid, ("IQ+-Tree", "RQ+-Tree", AP))
                        for grid in ("SS-Index", "KK-Index")
                    )
                ),
            ),
            Claim(
                "IQ+ and RQ+ update locations at an undesirably large cost, AP+ at a small one",
                Less("slu", AP, ("IQ+-Tree", "RQ+-Tree")),
                _nodes("slu"),
            ),
        ),
        weight=2.0,
    ),
    Experiment(
        "20",
        "variants of the AP+-Tree",
        "AP+, AP+k, AP+s",
        "IMM and MSP time",
        "`messages=tree`, `keywords`, `space`",
        variants,
        (
            Claim(
                "AP+ matches messages a little worse",
                All((Less("imm", "AP+k-Tree", (AP,)), Less("imm", "AP+s-Tree", (AP,)))),
            ),
            Claim(
                "AP+ processes moves nearly ten times as fast as the others",
                Less("msp", AP, ("AP+k-Tree", "AP+s-Tree"), {"AP+k-Tree": 8.0, "AP+s-Tree": 8.0}),
                _nodes("msp"),
            ),
        ),
        weight=2.0,
    ),
    Experiment(
        "21",
        "evaluation on different data sets",
        "words of TWEETS and GN; roads: Oldenburg, and California for San Joaquin, whose crossings "
        "have no places",
        "IMM and MSP time, index size",
        "drawn tweets; names and roads of the user's folder, or drawn ones",
        on_sets,
        (
            Claim("AP+ is always best in IMM", Less("imm", AP, RIVALS)),
            Claim("AP+ is always best in MSP", Less("msp", AP, RIVALS), _nodes("msp")),
            Claim("AP+ takes the least memory", Less("size", AP, RIVALS)),
        ),
        weight=3.0,
    ),
    Experiment(
        "22",
        "effect of mobility",
        "10–80 % move in a timestamp",
        "total MSP time",
        "time of a move times those that move; words of TWEETS and GN",
        measure_mobility,
        (Claim("AP+ always beats the baselines by a large margin", _leads(), _nodes("msp")),),
        weight=3.0,
    ),
    Experiment(
        "23",
        "effect of velocity",
        "0.5–4 times medium",
        "MSP time",
        "words of TWEETS and GN on Oldenburg's roads, or a drawn city's",
        measure_velocity,
        (
            Claim("AP+ always achieves the best performance", _leads(), _nodes("msp")),
            Claim(
                "time falls at first, and rises again as velocity grows further",
                All(
                    (
                        At(Grows("msp", (AP,), most=1.0), "msp", part=(0, 2)),
                        At(Grows("msp", (AP,), least=1.0), "msp", part=(-2, None)),
                    )
                ),
                _nodes("msp"),
            ),
        ),
        weight=3.0,
    ),
    Experiment(
        "24",
        "effect of the range size",
        "0.000001–10 % of the space",
        "MSP time",
        "circles of one area; words of TWEETS and GN",
        areas,
        (
            Claim(
                "processing time increases with the range for all",
                All(tuple(Rises(one, (AP, *RIVALS)) for one in _BOTH)),
            ),
            Claim("AP+ is much faster", _leads(), _nodes("msp")),
            Claim("and grows much slower", Slower("msp", AP, RIVALS)),
        ),
        weight=3.0,
    ),
    Experiment(
        "25",
        "effect of the number of subscriptions",
        "0.5–2.5 million subscriptions and messages",
        "MSP time",
        "IMM beside it; words of TWEETS and GN",
        sizes,
        (
            Claim("AP+ scales well", All(tuple(Proportional(one, (AP,)) for one in _BOTH))),
            Claim("and beats the others", _leads(), _nodes("msp")),
        ),
        weight=3.0,
    ),
    Experiment(
        "26",
        "Elaps: number of subscriptions",
        "10–1,000,000 subscriptions",
        "processing time, communication",
        "AP+ and AP+-Safe (light safe regions); Elaps is its authors' program and not public. Up "
        "to 10,000 subscribers",
        safe_sizes,
        (
            Claim(
                "AP+-Safe communicates less than AP+",
                Less("told", SAFE, (AP,)),
            ),
            Claim("and takes more time", Less("time", AP, (SAFE,))),
        ),
        weight=2.0,
    ),
    Experiment(
        "27",
        "Elaps: arrival rate",
        "10,000–50,000 new messages a timestamp",
        "processing time, communication",
        "AP+ and AP+-Safe; Elaps as in Figure 26",
        safe_rates,
        (
            Claim(
                "the same trends as in Figure 26",
                All((Less("told", SAFE, (AP,)), Less("time", AP, (SAFE,)))),
            ),
        ),
        weight=2.0,
    ),
)
