"""AP-Tree, standing subscriptions: Figures 10 to 18, Table 2 (section 5.1)."""

from __future__ import annotations

from collections.abc import Callable

from stentor_lab.report import number
from stentor_lab.reproduce.claims import (
    All,
    At,
    BestAt,
    Claim,
    Grows,
    Less,
    Near,
    Panels,
    Proportional,
    Rises,
    Slower,
    Steadier,
)
from stentor_lab.reproduce.experiment import Experiment, Paper
from stentor_lab.reproduce.keyword_data import AIS, CARS, GN, TWEETS
from stentor_lab.reproduce.papers.ap_tree_measures import (
    AP,
    IQ,
    ONE_COPY,
    RARE,
    RQ,
    TUNED,
    boolean,
    by_keywords,
    by_range,
    by_size,
    data_sets,
    divergence,
    growth,
    statistics,
    tuned,
    variants,
)
from stentor_lab.reproduce.papers.ap_tree_moving import MOVING


def _order(key: str) -> Callable[[Panels], str]:
    """What the order of keywords changes, from the curves of the panel *key*."""

    def told(panels: Panels) -> str:
        panel = panels[key]
        rare, frequent = (panel.curve(name).points[-1].value for name in (RARE, AP))
        iq, rq = (panel.curve(name).points[-1].value for name in (IQ, RQ))
        return (
            f"Tested: with the rarest keyword first, as the lists of rivals have it, the tree "
            f"takes {number(rare)} µs at the last point, and {number(frequent)} with the most "
            f"frequent first, as in the paper; {IQ} takes {number(iq)}, {RQ} {number(rq)}."
        )

    return told


def _copies(panels: Panels) -> str:
    """What one copy of each subscription takes, in place of up to eight."""
    eight, one = (panels["size"].curve(name).points[-1].value for name in (AP, ONE_COPY))
    return (
        f"Tested: with one copy of a subscription in place of up to 8 it takes {number(one)} "
        f"bytes each where it takes {number(eight)} at the last point."
    )


PAPER = Paper(
    "ap-tree",
    "AP-Tree and AP+-Tree",
    "Wang, Zhang, Zhang, Lin, Huang: AP-Tree, efficiently support location-aware publish/subscribe",
    "section 5",
    (
        Experiment(
            "table-2",
            "data sets",
            "GN, CARS, AIS",
            "messages, vocabulary, keywords a message",
            "the user's folder (lab/data.md), or drawn messages of the same form",
            statistics,
        ),
        Experiment(
            "10",
            "effect of f and θ_p",
            "f 50–800, θ_p 5–400",
            "matching time",
            "`ap_tree paper` with `fanout` and `leaf` varied",
            tuned,
            (
                Claim(
                    "θ_p does not noticeably matter below 40",
                    At(
                        Grows(f"leaf {TWEETS}", (AP,), least=0.8, most=1.25),
                        f"leaf {TWEETS}",
                        (5, 10, 20, 40),
                    ),
                ),
                Claim(
                    "f has its best value near 200: too small and too large are both worse",
                    BestAt(f"fanout {TWEETS}", AP, 200),
                ),
            ),
            weight=2.0,
        ),
        Experiment(
            "11",
            "variants of the AP-Tree",
            "data set",
            "matching time, building time",
            "DP, HR, KPriority, SPriority; Trie-Qd is not built: the paper leaves open how its "
            "quadtrees and its trie of keywords share a leaf",
            variants,
            (
                Claim(
                    "HR matches like DP",
                    Near("time", "HR", "DP", within=1.5),
                ),
                Claim("HR is built in far less time than DP", Less("build", "HR", ("DP",))),
                Claim(
                    "KPriority and SPriority match worse than HR",
                    Less("time", "HR", ("KPriority", "SPriority")),
                ),
            ),
            weight=2.0,
        ),
        Experiment(
            "12",
            "evaluation on different data sets",
            "TWEETS, GN, CARS, AIS",
            "matching time, construction time, index size",
            "all rivals, the paper's parameters and tuned ones",
            data_sets,
            (
                Claim(
                    "AP-Tree significantly beats the others",
                    Less("time", AP, (IQ, RQ, "R^t-Tree")),
                    _order("time"),
                ),
                Claim(
                    "on GN AP-Tree is 30 times as fast as the second best",
                    At(
                        Less(
                            "time",
                            AP,
                            (IQ, RQ, "R^t-Tree"),
                            {IQ: 30.0, RQ: 30.0, "R^t-Tree": 30.0},
                        ),
                        "time",
                        (GN,),
                    ),
                    _order("time"),
                ),
                Claim(
                    "RQ-Tree beats IQ-Tree on TWEETS, GN and AIS, and is beaten on CARS",
                    All(
                        (
                            At(Less("time", RQ, (IQ,)), "time", (TWEETS, GN, AIS)),
                            At(Less("time", IQ, (RQ,)), "time", (CARS,)),
                        )
                    ),
                ),
                Claim("IQ-Tree runs much faster than R^t-Tree", Less("time", IQ, ("R^t-Tree",))),
                Claim(
                    "R^t-Tree is constructed fastest",
                    Less("build", "R^t-Tree", (IQ, RQ, AP)),
                ),
                Claim(
                    "AP-Tree's memory is comparable with the others'",
                    All(tuple(Near("size", AP, name) for name in (IQ, RQ))),
                    _copies,
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "13",
            "effect of the number of keywords",
            "1–5 keywords",
            "matching time",
            "TWEETS drawn, GN; beside the paper's order the rarest keyword first",
            by_keywords,
            (
                Claim(
                    "all improve with more keywords",
                    Rises("drawn", (AP, IQ, RQ), falls=True),
                ),
                Claim(
                    "with more than one keyword AP-Tree leads by a significant margin",
                    At(Less("drawn", AP, (IQ, RQ)), "drawn", part=(1, None)),
                    _order("drawn"),
                ),
            ),
            weight=2.0,
        ),
        Experiment(
            "14",
            "effect of the range size",
            "0.000001–10 % of the space",
            "matching time",
            "TWEETS drawn, GN",
            by_range,
            (
                Claim(
                    "larger ranges take longer",
                    Rises("drawn", (AP, IQ, RQ)),
                ),
                Claim(
                    "AP-Tree consistently beats RQ and IQ",
                    Less("drawn", AP, (IQ, RQ)),
                    _order("drawn"),
                ),
                Claim(
                    "RQ-Tree is behind IQ-Tree where ranges are very small, before it where large",
                    All(
                        (
                            At(Less("drawn", IQ, (RQ,)), "drawn", part=(0, 1)),
                            At(Less("drawn", RQ, (IQ,)), "drawn", part=(-1, None)),
                        )
                    ),
                ),
                Claim(
                    "AP-Tree is the most stable",
                    Steadier("drawn", AP, (IQ, RQ)),
                ),
            ),
            weight=2.0,
        ),
        Experiment(
            "15",
            "effect of the number of subscriptions",
            "1–20 million (`--up-to 20`; 5 otherwise)",
            "matching time",
            "TWEETS drawn, GN",
            by_size,
            (
                Claim(
                    "AP-Tree is much more scalable",
                    Slower("drawn", AP, (IQ, RQ)),
                    _order("drawn"),
                ),
                Claim(
                    "time grows less than in proportion to subscriptions",
                    Proportional("drawn", (AP, TUNED, IQ, RQ)),
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "16",
            "effect of θ_KL",
            "0.0001–0.5",
            "matching time, maintenance",
            "a set that drifts, a fifth built at once, the rest inserted",
            divergence,
            (
                Claim(
                    "a small θ_KL matches better",
                    Rises("matching", (AP,)),
                ),
                Claim("and maintains at a higher cost", Rises("insertion", (AP,), falls=True)),
            ),
            weight=2.0,
        ),
        Experiment(
            "17",
            "index maintenance",
            "δ 10–90 % built at once",
            "matching time, insertion time",
            "a set that drifts; AP-Tree-NR is `rebuilds=no`",
            growth,
            (
                Claim(
                    "AP-Tree-NR is not satisfactory where δ is small",
                    At(Less("matching", AP, ("AP-Tree-NR",)), "matching", part=(0, 1)),
                ),
                Claim(
                    "AP-Tree consistently beats IQ and RQ",
                    Less("matching", AP, (IQ, RQ)),
                    _order("matching"),
                ),
                Claim(
                    "AP-Tree-NR inserts fastest, AP-Tree slowest",
                    All(
                        (
                            Less("insertion", "AP-Tree-NR", (AP, IQ, RQ)),
                            Less("insertion", IQ, (AP,)),
                            Less("insertion", RQ, (AP,)),
                        )
                    ),
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "18",
            "general Boolean subscriptions",
            "3–7 keywords; 1–20 million subscriptions",
            "matching time",
            "keywords joined by AND and OR in two parts",
            boolean,
            (
                Claim(
                    "all fluctuate little with the number of keywords",
                    Grows("keywords", (AP, IQ, RQ), least=0.5, most=2.0),
                ),
                Claim(
                    "AP-Tree scales well",
                    Proportional("size", (AP,)),
                    _order("size"),
                ),
                Claim(
                    "and uses keywords better than the others where there are many",
                    At(Less("keywords", AP, (IQ, RQ)), "keywords", part=(-1, None)),
                    _order("keywords"),
                ),
            ),
            weight=3.0,
        ),
        *MOVING,
    ),
    (
        ("Figures 1–9", "drawings of the method"),
        ("Table 1", "notation"),
        ("Table 3", "parameters of Figures 19–25, varied there"),
    ),
)
