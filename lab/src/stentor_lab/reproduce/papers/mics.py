"""MICS: Tables 1 to 3 and Figures 7 to 12 (sections 6.1 and 7)."""

from __future__ import annotations

from stentor_lab.bench.mics_boxes import (
    DIMENSIONS,
    LAWS,
    UNIFORM,
    ZIPF,
)
from stentor_lab.reproduce.claims import (
    Across,
    All,
    Claim,
    Grows,
    Less,
    Narrows,
    Near,
    Panels,
    Slows,
)
from stentor_lab.reproduce.experiment import Experiment, Paper
from stentor_lab.reproduce.papers.mics_measures import (
    by_side,
    evaluated,
    forwarded,
    inserted,
    matching,
    measure_covering,
    measure_stored,
    projection,
    to_ranges,
)

_OF_ALL = tuple(f"d = {dimensions}" for dimensions in DIMENSIONS)


def _mixed_sides(panels: Panels) -> str:
    """What sides of 1 to 2 leave in place of 2, from the curves of both."""
    told = []
    for d in DIMENSIONS:
        ends = [
            panels[UNIFORM].curve(name).points[-1].value
            for name in (f"CSM, d = {d}", f"CSM, sides 1–2, d = {d}", f"actual, d = {d}")
        ]
        told.append(f"d = {d}: {ends[0]:,.0f} ranges, {ends[1]:,.0f} of {ends[2]:,.0f}")
    return f"Tested with sides of 1 to 2 in place of 2, at the last point: {'; '.join(told)}."


PAPER = Paper(
    "mics",
    "MICS",
    "Jafarpour, Mehrotra, Venkatasubramanian, Montanari: MICS, an efficient content space "
    "representation model for publish/subscribe systems",
    "sections 6.1 and 7",
    (
        Experiment(
            "table-1",
            "a box to ranges of the Hilbert curve",
            "side 2–16, 2–4 dimensions",
            "time",
            "the decomposition in the order of the curve, and the cells enumerated and sorted",
            to_ranges,
            (
                Claim(
                    "in four dimensions a side of 16 takes 1,241 times as long as one of 2",
                    Grows("d4", ("cells enumerated",), least=100.0),
                ),
                Claim(
                    "converting takes up to 124 ms, so it is pushed to clients",
                    Near("d4", "in the order of the curve", within=5.0),
                    "Tested by doing it otherwise: in the order of the curve it takes "
                    "microseconds, so a broker can do it itself.",
                ),
            ),
        ),
        Experiment(
            "7",
            "covering and subsumption effect",
            "2–4 dimensions",
            "subscriptions forwarded to a neighbour",
            "the merged table beside covering alone and nothing; Zipf, side 4",
            forwarded,
            (
                Claim(
                    "subsumption forwards considerably less than covering alone",
                    Less("forwarded", "subsumption", ("covering", "nothing")),
                ),
                Claim(
                    "the difference is larger where there are fewer dimensions",
                    Narrows("forwarded", "subsumption", "covering"),
                ),
            ),
        ),
        Experiment(
            "8",
            "subscription insertion time",
            "subscriptions, dimensions, uniform and Zipf",
            "time with covering, subsumption and merging",
            "the table of ranges; building `packed`, `auto` and the block scan beside it",
            inserted,
            (
                Claim(
                    "the time is almost the same for any number of subscriptions",
                    All((Grows(UNIFORM, _OF_ALL, most=2.0), Grows(ZIPF, _OF_ALL, most=2.0))),
                ),
                Claim(
                    "it takes more with more dimensions",
                    All((Less(UNIFORM, "d = 2", ("d = 3",)), Less(UNIFORM, "d = 3", ("d = 4",)))),
                ),
                Claim(
                    "uniform subscriptions take more than Zipf's",
                    Across(ZIPF, UNIFORM, _OF_ALL),
                    "Tested in Figure 11, which counts the ranges that the tables hold.",
                ),
            ),
        ),
        Experiment(
            "9",
            "subscription covering time",
            "subscriptions, uniform and Zipf",
            "time to check covering",
            "ranges looked up in the table beside the linear check; matching indexes do not do it",
            measure_covering,
            tuple(
                Claim(
                    f"much faster than the linear algorithm ({law})",
                    All(tuple(Less(law, f"MICS, {of}", (f"linear, {of}",)) for of in _OF_ALL)),
                )
                for law in LAWS
            ),
        ),
        Experiment(
            "10",
            "publication matching time",
            "subscriptions, uniform and Zipf",
            "time to match",
            "the number looked up in the table beside the linear check, the block scan, `packed`, "
            "`auto`",
            matching,
            (
                Claim(
                    "significantly outperforms linear matching",
                    All(tuple(Less(UNIFORM, f"MICS, {of}", (f"linear, {of}",)) for of in _OF_ALL)),
                ),
                Claim(
                    "matching time does not increase significantly with subscriptions",
                    All(
                        tuple(
                            Grows(law, tuple(f"MICS, {of}" for of in _OF_ALL), most=1.5)
                            for law in LAWS
                        )
                    ),
                ),
                Claim(
                    "faster where subscriptions follow Zipf's law",
                    Across(ZIPF, UNIFORM, tuple(f"MICS, {of}" for of in _OF_ALL)),
                ),
            ),
        ),
        Experiment(
            "11",
            "stored ranges by dimensions",
            "subscriptions, dimensions, uniform and Zipf",
            "ranges stored after covering, subsumption, merging",
            "sides of 2 as described, and of 1–2, which fit the printed curves",
            measure_stored,
            (
                Claim(
                    "fewer ranges are stored than subscriptions have (Zipf)",
                    All(
                        tuple(
                            Less(ZIPF, f"CSM, d = {d}", (f"actual, d = {d}",)) for d in DIMENSIONS
                        )
                    ),
                ),
                Claim(
                    "fewer ranges are stored than subscriptions have (uniform)",
                    All(
                        tuple(
                            Less(UNIFORM, f"CSM, d = {d}", (f"actual, d = {d}",))
                            for d in DIMENSIONS
                        )
                    ),
                    _mixed_sides,
                ),
            ),
        ),
        Experiment(
            "12",
            "stored ranges by subscription size",
            "subscriptions, sides 2, 4, 8",
            "ranges stored",
            "three dimensions; a quarter as many as the paper, for a box of side 8 has 69 ranges",
            by_side,
            (
                Claim(
                    "larger subscriptions store more ranges (uniform)",
                    All(
                        (Less(UNIFORM, "side 2", ("side 4",)), Less(UNIFORM, "side 4", ("side 8",)))
                    ),
                ),
                Claim(
                    "the increase slows down as subscriptions increase",
                    All(tuple(Slows(law, ("side 2", "side 4", "side 8")) for law in LAWS)),
                ),
                Claim(
                    "more so with Zipf's law",
                    Across(ZIPF, UNIFORM, ("side 2", "side 4", "side 8")),
                ),
            ),
        ),
        Experiment(
            "table-2",
            "false positives of projecting seven dimensions onto three",
            "20,000–150,000 subscriptions, uniform and Zipf",
            "publications forwarded, % in vain",
            "as described, and fitted: sides of 1–4, few of the other dimensions asked for",
            projection,
            (
                Claim(
                    "Zipf: half to three quarters are forwarded, 3–6 % of them in vain",
                    All((Near("traffic Zipf", "fitted"), Near("vain Zipf", "fitted"))),
                    "Tested: only the fitted workload gives the table; see the next line.",
                ),
                Claim(
                    "as described (side 4 in all seven dimensions)",
                    All((Near("vain Zipf", "as described"), Near("vain uniform", "as described"))),
                    "It cannot follow: in three dimensions found, a uniform publication is in the "
                    "other four with a probability of (4/256)^4, so all is forwarded in vain. "
                    "Tested: subscriptions that ask for an eighth (uniform) or a twentieth (Zipf) "
                    "of the other dimensions give what is printed.",
                ),
            ),
        ),
        Experiment(
            "table-3",
            "subscriptions to evaluate with subscription indexing",
            "20,000–150,000 subscriptions, uniform and Zipf",
            "subscriptions that share a cell of three dimensions",
            "the postings of the index",
            evaluated,
            (
                Claim("uniform: one", Near(UNIFORM, "to evaluate")),
                Claim(
                    "Zipf: 64 to 600",
                    Near(ZIPF, "to evaluate", within=3.0),
                ),
            ),
        ),
    ),
    (("Figures 1–6", "drawings of the method"),),
)
