"""MO-Tree: Figures 4 to 12, Table 5, and its own parameters (section 6)."""

from __future__ import annotations

from stentor_lab.reproduce.claims import Claim, Grows, Less, Near
from stentor_lab.reproduce.experiment import Experiment, Paper
from stentor_lab.reproduce.papers.mo_tree_measures import (
    BEQ,
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

_FLAT = (
    "A flat bitset scan (our block scan) intersects 512 subscriptions at once and beats the "
    "MO-Tree with no structure at all; `packed` orders the same blocks by place."
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
                ),
                Claim(
                    "and 18.5 times as fast as the R*-Tree",
                    Less("small", MO, (STAR,), {STAR: 18.5}),
                    "At a size that it can do, where the paper's tree of six layers visits mostly "
                    "empty buckets: `layers` shows what each layer costs there.",
                ),
                Claim(
                    "(ours) the block scan, which has no structure, is not beaten",
                    Less("time", "block scan", (MO,)),
                    _FLAT,
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
                ),
                Claim(
                    "and 47.2 times as the R*-Tree", Less("time small", MO, (STAR,), {STAR: 47.2})
                ),
                Claim("MO-Tree improves with more predicates", Grows("time", (MO,), most=1.0)),
                Claim(
                    "the others degrade with more predicates",
                    Grows("time", (TAMA, OP), least=1.0),
                ),
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
                Claim("grows with the number of events", Grows("time", (MO, BEQ), least=1.2)),
                Claim(
                    "at 5M MO-Tree is 3.9 times as fast as BEQ-Tree",
                    Less("time", MO, (BEQ,), {BEQ: 3.9}),
                ),
                Claim("and 628 times as the R*-Tree", Less("small", MO, (STAR,), {STAR: 628.0})),
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
                    Grows("small", (MO, STAR), most=1.0),
                ),
                Claim(
                    "BEQ-Tree increases slowly with predicates", Grows("time", (BEQ,), least=1.0)
                ),
                Claim(
                    "at K_s = 10 MO-Tree is 17.5 times as fast as BEQ-Tree",
                    Less("time", MO, (BEQ,), {BEQ: 17.5}),
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
                    "MO-Tree degrades as popularity evens out",
                    Grows("events", (MO,), most=1.0),
                    "From alpha = 0 to 1 it gets faster.",
                ),
                Claim(
                    "at alpha = 0 still faster than TAMA and OpIndex",
                    Less("events", MO, (TAMA, OP)),
                ),
                Claim(
                    "MO-Tree's own times",
                    Near("events", MO, f"the paper's {MO}", within=3.0),
                    "Equal sizes are needed for this one: a full run.",
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
                            "Ours of the BEQ-Tree merges a batch in one pass, so sorting costs "
                            "little for each event.",
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
                            "Lists are searched from their beginning; they are as long as sizes "
                            "make them.",
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
                    Less("memory", MO, ("TAMA+BEQ-Tree", "OpIndex+BEQ-Tree")),
                    "Empty buckets take 10^6 pointers whatever the size, which counts where there "
                    "are few subscriptions.",
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
            (Claim("more layers prune more", Grows("events", (MO,), most=1.0)),),
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
