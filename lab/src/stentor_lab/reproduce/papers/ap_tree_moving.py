"""AP+-Tree, moving subscriptions: Figures 19 to 27 (section 5.2)."""

from __future__ import annotations

from typing import Final

from stentor_lab.reproduce.claims import Claim, Grows, Less
from stentor_lab.reproduce.experiment import Experiment
from stentor_lab.reproduce.papers.ap_tree_journeys import (
    AP,
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

_UNIFIED = (
    "The lists of rivals are as incremental as ours: a move asks before and after, and compares. "
    "Their lists of messages are longer by the levels of cells."
)

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
                Less("mi", "SS-Index", ("IQ+-Tree", "RQ+-Tree", AP)),
                "A quadtree lists a message once for each level, a grid twice.",
            ),
            Claim(
                "IQ+ and RQ+ update locations at an undesirably large cost, AP+ at a small one",
                Less("slu", AP, ("IQ+-Tree", "RQ+-Tree")),
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
            Claim("AP+ matches messages a little worse", Less("imm", "AP+k-Tree", (AP,))),
            Claim(
                "AP+ processes moves nearly ten times as fast as the others",
                Less("msp", AP, ("AP+k-Tree", "AP+s-Tree"), {"AP+k-Tree": 8.0, "AP+s-Tree": 8.0}),
                "AP+ shows no such lead over AP+k: a move looks into the lists of one rare keyword "
                "either way, and those are short.",
            ),
        ),
        weight=2.0,
    ),
    Experiment(
        "21",
        "evaluation on different data sets",
        "roads: Oldenburg; California for San Joaquin, whose crossings have no places",
        "IMM and MSP time, index size",
        "words of drawn tweets; roads of the user's folder or a drawn city's",
        on_sets,
        (
            Claim("AP+ is always best in IMM", Less("imm", AP, RIVALS), _UNIFIED),
            Claim("AP+ is always best in MSP", Less("msp", AP, RIVALS), _UNIFIED),
            Claim("AP+ takes the least memory", Less("size", AP, RIVALS)),
        ),
        weight=3.0,
    ),
    Experiment(
        "22",
        "effect of mobility",
        "10–80 % move in a timestamp",
        "total MSP time",
        "time of a move times those that move",
        measure_mobility,
        (Claim("AP+ always beats the baselines by a large margin", Less("msp", AP, RIVALS)),),
        weight=3.0,
    ),
    Experiment(
        "23",
        "effect of velocity",
        "0.5–4 times medium",
        "MSP time",
        "drawn tweets on Oldenburg's roads, or a drawn city's",
        measure_velocity,
        (
            Claim("AP+ always achieves the best performance", Less("msp", AP, RIVALS)),
            Claim("fast movement degrades incremental evaluation", Grows("msp", (AP,), least=1.1)),
        ),
        weight=3.0,
    ),
    Experiment(
        "24",
        "effect of the range size",
        "0.000001–10 % of the space",
        "MSP time",
        "circles of one area",
        areas,
        (
            Claim(
                "processing time increases with the range for all",
                Grows("msp", (AP, *RIVALS), least=1.2),
            ),
            Claim("AP+ is much faster", Less("msp", AP, RIVALS)),
        ),
        weight=3.0,
    ),
    Experiment(
        "25",
        "effect of the number of subscriptions",
        "0.5–2.5 million subscriptions and messages",
        "MSP time",
        "IMM beside it",
        sizes,
        (
            Claim("AP+ scales well", Grows("msp", (AP,), most=5.0)),
            Claim("and beats the others", Less("msp", AP, RIVALS)),
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
                "Each told region saves steps; with many messages regions are small.",
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
        (Claim("the same trends as in Figure 26", Less("told", SAFE, (AP,))),),
        weight=2.0,
    ),
)
