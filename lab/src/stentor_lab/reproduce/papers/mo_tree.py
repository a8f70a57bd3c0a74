"""MO-Tree: Figures 4 to 12, Table 5, and its own parameters (section 6)."""

from __future__ import annotations

from collections.abc import Callable

from stentor_lab.report import number
from stentor_lab.reproduce.claims import All, At, Claim, Grows, Less, Near, Panels, Rises
from stentor_lab.reproduce.experiment import Experiment, Paper
from stentor_lab.reproduce.papers.mo_tree_measures import (
    BEQ,
    FLATTER,
    MO,
    OP,
    STAR,
    TAMA,
    alphas,
    by_predicates,
    by_size,
    event_changes,
    layers,
    levels,
    live_by_predicates,
    live_by_size,
    memory,
    only,
    subscription_changes,
    widths,
)


def _layers(panel: str) -> Callable[[Panels], str]:
    """What four of the six layers cost, from the curves of *panel*."""

    def told(panels: Panels) -> str:
        six, two = (panels[panel].curve(name).points[-1].value for name in (MO, FLATTER))
        return (
            f"Tested: with two layers in place of six it takes {number(two)} where it takes "
            f"{number(six)} at the last point ({panels[panel].y})."
        )

    return told


def _flatter_memory(panels: Panels) -> str:
    """What the buckets of four layers take, from the curves."""
    ends = [panels["memory"].curve(name).points[-1].value for name in (MO, FLATTER)]
    return (
        f"Tested: with two layers in place of six it takes {number(ends[1])} MB where it takes "
        f"{number(ends[0])} at the last point."
    )


PAPER = Paper(
    "mo-tree",
    "MO-Tree",
    "Ding, Qian et al.: MO-Tree, an efficient forwarding engine for spatiotemporal-aware "
    "publish/subscribe",
    "section 6",
    (
        Experiment(
            "4",
            "event matching by N_s",
            "1–5 million subscriptions",
            "event matching time",
            "TAMA, OpIndex; the R*-Tree at a size it can do",
            by_size,
            (
                Claim(
                    "at 5M MO-Tree is 17.2 and 60.4 times as fast as TAMA and OpIndex",
                    Less("time", MO, (TAMA, OP), {TAMA: 17.2, OP: 60.4}),
                    _layers("time"),
                ),
                Claim(
                    "and 18.5 times as fast as the R*-Tree",
                    Less("small", MO, (STAR,), {STAR: 18.5}),
                    _layers("small"),
                ),
                Claim(
                    "(ours) the block scan, which has no structure, is not beaten",
                    Less("time", "block scan", (MO,)),
                ),
            ),
            weight=4.0,
        ),
        Experiment(
            "5",
            "event matching by K_s",
            "4–10 predicates",
            "event matching time",
            "TAMA, OpIndex; the R*-Tree at a size it can do",
            by_predicates,
            (
                Claim(
                    "at K_s = 10 MO-Tree is 15.6 and 57.3 times as fast as TAMA and OpIndex",
                    Less("time", MO, (TAMA, OP), {TAMA: 15.6, OP: 57.3}),
                    _layers("time"),
                ),
                Claim(
                    "and 47.2 times as the R*-Tree",
                    Less("time small", MO, (STAR,), {STAR: 47.2}),
                    _layers("time small"),
                ),
                Claim(
                    "MO-Tree improves with more predicates",
                    Rises("time", (MO,), falls=True),
                    _layers("time"),
                ),
                Claim("the others degrade with more predicates", Rises("time", (TAMA, OP))),
            ),
            weight=4.0,
        ),
        Experiment(
            "6",
            "subscription matching by N_e",
            "1–5 million live events",
            "subscription matching time",
            "BEQ-Tree; the R*-Tree at a size it can do",
            live_by_size,
            (
                Claim("grows with the number of events", Rises("time", (MO, BEQ))),
                Claim(
                    "at 5M MO-Tree is 3.9 times as fast as BEQ-Tree",
                    Less("time", MO, (BEQ,), {BEQ: 3.9}),
                    _layers("time"),
                ),
                Claim(
                    "and 628 times as the R*-Tree",
                    Less("small", MO, (STAR,), {STAR: 628.0}),
                    _layers("small"),
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "7",
            "subscription matching by K_s",
            "4–10 predicates",
            "subscription matching time",
            "BEQ-Tree; the R*-Tree at a size it can do",
            live_by_predicates,
            (
                Claim(
                    "more predicates are beneficial to MO-Tree and R*-Tree",
                    Rises("small", (MO, STAR), falls=True),
                    _layers("small"),
                ),
                Claim(
                    "BEQ-Tree increases slowly with predicates",
                    All((Rises("time", (BEQ,)), Grows("time", (BEQ,), most=2.0))),
                ),
                Claim(
                    "at K_s = 10 MO-Tree is 17.5 times as fast as BEQ-Tree",
                    Less("time", MO, (BEQ,), {BEQ: 17.5}),
                    _layers("time"),
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "table-5",
            "effect of attribute distribution",
            "alpha 0–1",
            "subscription and event matching time",
            "as in Figures 4 and 6, the printed milliseconds beside it",
            alphas,
            (
                Claim(
                    "MO-Tree degrades as popularity evens out; the others improve or stay",
                    All(
                        (
                            Rises("events", (MO,), falls=True),
                            Rises("live", (MO,), falls=True),
                            Grows("events", (TAMA, OP), least=1.0),
                            Grows("events small", (STAR,), least=1.0),
                            Grows("live", (BEQ,), least=1.0),
                        )
                    ),
                    _layers("events"),
                ),
                Claim(
                    "at alpha = 0 8.1 and 26.3 times as fast as TAMA and OpIndex, 6.5 as R*-Tree",
                    All(
                        (
                            At(
                                Less("events", MO, (TAMA, OP), {TAMA: 8.1, OP: 26.3}),
                                "events",
                                part=(0, 1),
                            ),
                            At(
                                Less("events small", MO, (STAR,), {STAR: 6.5}),
                                "events small",
                                part=(0, 1),
                            ),
                        )
                    ),
                    _layers("events"),
                ),
                Claim(
                    "at alpha = 0 2.1 times as fast as BEQ-Tree, in subscription matching",
                    At(Less("live", MO, (BEQ,), {BEQ: 2.1}), "live", part=(0, 1)),
                    _layers("live"),
                ),
                Claim(
                    "MO-Tree's own times",
                    Near("events", MO, f"the paper's {MO}", within=3.0),
                ),
            ),
            weight=4.0,
        ),
        *(
            Experiment(
                number,
                f"{what} {change} time",
                "1–5 million",
                f"time to {verb} one",
                "batches of up to 10,000; the R*-Tree at a size it can do",
                only(measure, verb),
                claims,
                weight=2.0,
            )
            for number, what, change, verb, measure, claims in (
                (
                    "8",
                    "event",
                    "insertion",
                    "insert",
                    event_changes,
                    (
                        Claim(
                            "1,235 and 4,345 times as fast as BEQ-Tree and R*-Tree",
                            Less("small insert", MO, (BEQ, STAR), {BEQ: 1235.0, STAR: 4345.0}),
                        ),
                    ),
                ),
                (
                    "9",
                    "event",
                    "deletion",
                    "delete",
                    event_changes,
                    (
                        Claim(
                            "497 and 25,817 times as fast as BEQ-Tree and R*-Tree",
                            Less("small delete", MO, (BEQ, STAR), {BEQ: 497.0, STAR: 25817.0}),
                        ),
                    ),
                ),
                (
                    "10",
                    "subscription",
                    "insertion",
                    "insert",
                    subscription_changes,
                    (
                        Claim(
                            "22.9, 2,476 and 0.98 times as fast as TAMA, R*-Tree and OpIndex",
                            Less(
                                "small insert",
                                MO,
                                (TAMA, STAR, OP),
                                {TAMA: 22.9, STAR: 2476.0, OP: 0.98},
                            ),
                        ),
                    ),
                ),
                (
                    "11",
                    "subscription",
                    "deletion",
                    "delete",
                    subscription_changes,
                    (
                        Claim(
                            "2,238, 16,019 and 2,701 times as fast as TAMA, R*-Tree and OpIndex",
                            Less(
                                "small delete",
                                MO,
                                (TAMA, STAR, OP),
                                {TAMA: 2238.0, STAR: 16019.0, OP: 2701.0},
                            ),
                        ),
                    ),
                ),
            )
        ),
        Experiment(
            "12",
            "memory consumption",
            "1–5 million of each",
            "memory beside the exact columns",
            "TAMA+BEQ-Tree and OpIndex+BEQ-Tree; the library does not tell the R*-Tree's",
            memory,
            (
                Claim(
                    "MO-Tree takes half of TAMA+BEQ-Tree and two thirds of OpIndex+BEQ-Tree",
                    Less(
                        "memory",
                        MO,
                        ("TAMA+BEQ-Tree", "OpIndex+BEQ-Tree"),
                        {"TAMA+BEQ-Tree": 2.0, "OpIndex+BEQ-Tree": 1.5},
                    ),
                    _flatter_memory,
                ),
            ),
            weight=2.0,
        ),
        Experiment(
            "layers",
            "height of the tree",
            "H 1–6",
            "both matching times",
            "the paper's preset with other layers",
            layers,
            (Claim("more layers prune more", Rises("events", (MO,), falls=True)),),
            weight=2.0,
        ),
        Experiment(
            "levels",
            "levels of cells",
            "L 1–4",
            "both matching times",
            "the tuned tree with other levels",
            levels,
            (Claim("levels of cells prune more than one", Grows("events", (MO,), most=1.0)),),
            weight=2.0,
        ),
        Experiment(
            "widths",
            "widths of cells",
            "η 2–6.5",
            "both matching times",
            "the tuned tree with other bounds on stabbed cells",
            widths,
            (Claim("the widest cells (η = 6.5) are best", Grows("events", (MO,), most=1.0)),),
            weight=2.0,
        ),
    ),
    (
        ("Figures 1–3", "drawings of the method"),
        ("Tables 1–3", "notation and examples"),
        ("Table 4", "parameters, varied in the figures"),
    ),
)
