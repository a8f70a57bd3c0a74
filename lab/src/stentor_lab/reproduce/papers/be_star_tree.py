"""BE*-Tree: Figures 6 to 9, Table II, and every axis of Table III as a curve (section VII)."""

from __future__ import annotations

from typing import Any

from stentor_lab.reproduce.claims import (
    All,
    BestAt,
    Claim,
    Grows,
    Less,
    Near,
    Rises,
    Similar,
    Slower,
)
from stentor_lab.reproduce.experiment import Experiment, Paper
from stentor_lab.reproduce.papers.be_star_measures import (
    BE,
    KIND,
    SCAN,
    STAR,
    TUNED,
    adaptation,
    by_k,
    by_share,
    cardinality,
    clusters,
    dimensions,
    equality,
    measure_events,
    measure_predicates,
    measure_sizes,
    micro,
    overlap,
    real,
    top_by_share,
    top_by_size,
    weights,
)


def _axis(number: str, title: str, varied: str, ours: str, measure: Any, *claims: Claim) -> Any:
    return Experiment(number, title, varied, "matching time", ours, measure, claims, weight=2.0)


def _wins(law: str, panel: str = "") -> Claim:
    return Claim(
        f"BE* outperforms k-index and BE-Tree ({law})",
        Less(panel or law, STAR, (KIND, BE)),
    )


PAPER = Paper(
    "be-star-tree",
    "BE*-Tree",
    "Sadoghi, Jacobsen: Relevance matters, capitalizing on less (top-k matching in "
    "publish/subscribe)",
    "section VII",
    (
        Experiment(
            "table-ii",
            "leaf capacity and construction time",
            "A; uniform, Zipf, author, title",
            "matching time; time to build",
            "A at three match shares; µs for one, the paper's seconds divided by its sizes",
            micro,
            (
                Claim(
                    "A = 5 is best where less than 1 % matches",
                    BestAt("leaf", "fewest match", 5),
                ),
                Claim(
                    "a million are built in 2.3 to 5 seconds",
                    Near("build", STAR, within=3.0),
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "6",
            "dimension cardinality",
            "2,500–250 million",
            "matching time",
            "uniform and Zipf",
            cardinality,
            (
                Claim(
                    "BE-Tree takes 1.29× (uniform) and 1.36× (Zipf) at the largest, BE* the same",
                    All(
                        (
                            Grows("uniform", (STAR,), most=1.3),
                            Grows("uniform", (BE,), least=1.1),
                            Grows("zipf", (BE,), least=1.1),
                        )
                    ),
                ),
                _wins("uniform"),
                _wins("zipf"),
            ),
            weight=2.0,
        ),
        Experiment(
            "7",
            "number of clusters, cluster size",
            "none, 2–26; 25–800",
            "matching time",
            "uniform and Zipf",
            clusters,
            (
                Claim(
                    "k-index takes 20.84 times from no clusters to two (Zipf)",
                    Grows("zipf", (KIND,), least=10.4),
                ),
                Claim(
                    "k-index takes 17.44 times from size 800 to 25 (Zipf)",
                    Grows("size zipf", (KIND,), most=1 / 8.7),
                ),
                Claim(
                    "BE* remains dominant",
                    All(
                        tuple(
                            Less(panel, STAR, (KIND, BE))
                            for panel in ("uniform", "zipf", "size uniform", "size zipf")
                        )
                    ),
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "8",
            "top-k by workload size",
            "100,000–1 million; author, title",
            "time for the 1 and 5 best",
            "k-ind(1) is all matches and then the best: its own pruning gained 1–9 %",
            top_by_size,
            (
                Claim(
                    "BE*(1) improves over BE* by up to 23 % (uniform) and 77 % (Zipf)",
                    All(
                        (
                            Less("uniform", "BE*(1)", (STAR,), {STAR: 1.3}),
                            Less("zipf", "BE*(1)", (STAR,), {STAR: 4.3}),
                        )
                    ),
                ),
                Claim(
                    "BE*(1) improves over BE* by up to 72 % (author) and 71 % (title)",
                    All(
                        (
                            Less("author", "BE*(1)", (STAR,), {STAR: 3.6}),
                            Less("title", "BE*(1)", (STAR,), {STAR: 3.4}),
                        )
                    ),
                ),
                Claim(
                    "BE*(1) and BE*(5) gain significantly on k-ind(1)",
                    All(
                        tuple(
                            Less(panel, one, ("k-ind(1)",))
                            for panel in ("uniform", "zipf", "author", "title")
                            for one in ("BE*(1)", "BE*(5)")
                        )
                    ),
                ),
            ),
            weight=3.0,
        ),
        Experiment(
            "9",
            "top-k by matching probability",
            "0.01–9 %, as far as ten match",
            "time for the 1 and 5 best",
            "uniform and Zipf",
            top_by_share,
            (
                Claim(
                    "time grows with the match probability for both",
                    All(tuple(Rises(law, (STAR, "k-ind")) for law in ("uniform", "zipf"))),
                ),
                Claim(
                    "BE* scales better and continues to outperform k-ind",
                    All(
                        tuple(
                            rule
                            for law in ("uniform", "zipf")
                            for rule in (
                                Slower(law, STAR, ("k-ind",)),
                                Less(law, "BE*(1)", ("k-ind(1)",)),
                            )
                        )
                    ),
                ),
            ),
            weight=2.0,
        ),
        _axis(
            "size",
            "workload size",
            "100,000–1 million",
            "Table III's first column, uniform and Zipf",
            measure_sizes,
            Claim(
                "BE* outperforms k-index by 60 % and BE-Tree by 35 % (uniform)",
                Less("uniform", STAR, (KIND, BE), {KIND: 2.5, BE: 1.5}),
            ),
            Claim(
                "BE* outperforms k-index by 90 % and BE-Tree by 65 % (Zipf)",
                Less("zipf", STAR, (KIND, BE), {KIND: 10.0, BE: 2.9}),
            ),
            Claim(
                "all beat SCAN",
                All(
                    tuple(
                        Less(law, one, (SCAN,))
                        for law in ("uniform", "zipf")
                        for one in (STAR, KIND, BE, "Propagation", "Gryphon")
                    )
                ),
            ),
        ),
        _axis("dimensions", "dimensionality", "50–1400", "Table III", dimensions, _wins("uniform")),
        _axis(
            "events",
            "predicates of events",
            "13–81 values",
            "Table III",
            measure_events,
            _wins("zipf"),
        ),
        _axis(
            "expressions",
            "predicates of expressions",
            "5–66",
            "Table III, 15 values more in events",
            measure_predicates,
            _wins("uniform"),
        ),
        _axis("match", "match probability", "0.01–9 %", "Table III", by_share, _wins("uniform")),
        _axis(
            "equality",
            "share of equalities",
            "0–100 %",
            "equalities in place of short ranges",
            equality,
            Claim(
                "Gryphon is effective for equality predicates only",
                Grows("uniform", ("Gryphon",), most=0.7),
            ),
            Claim(
                "Propagation's keys are equalities: it gains with them",
                Grows("uniform", ("Propagation",), most=0.7),
            ),
        ),
        _axis(
            "overlap",
            "overlap of ranges",
            "lengths 2–60",
            "longer ranges of the same points",
            overlap,
            Claim(
                "k-index enumerates: its space grows with the length of ranges",
                Rises("space uniform", (KIND,)),
            ),
        ),
        _axis(
            "k",
            "k",
            "1–50 best",
            "of the same tree",
            by_k,
            Claim(
                "time grows with k", All(tuple(Rises(law, (STAR,)) for law in ("uniform", "zipf")))
            ),
        ),
        _axis(
            "real",
            "real data: authors and titles",
            "data",
            "the user's folder, or drawn letters of the same lengths",
            real,
            _wins("author"),
            _wins("title"),
        ),
        _axis(
            "adaptation",
            "self-adjustment",
            "10–100 % replaced by subscriptions of another law",
            "grown under one law; beside each tree one that is built of what then stands",
            adaptation,
            Claim(
                "the structure adapts: about as fast as a fresh one",
                All(
                    tuple(
                        Near(law, name, f"{name}, fresh", within=1.5)
                        for law in ("uniform", "zipf")
                        for name in (STAR, TUNED)
                    )
                ),
            ),
        ),
        _axis(
            "event-weights",
            "weights of events",
            "plain, weighted; match probability",
            "the 1 and 5 best, uniform and Zipf",
            weights,
            Claim(
                "weights of events cost little",
                All(
                    tuple(
                        Similar(f"weighted {law}", f"plain {law}", ("BE*(1)", "BE*(5)"), most=1.5)
                        for law in ("uniform", "zipf")
                    )
                ),
            ),
        ),
    ),
    (
        ("Figures 1–5", "drawings of the method"),
        ("Table I", "notation"),
        ("Table III", "parameters of the workloads: each axis is a line above"),
    ),
)
