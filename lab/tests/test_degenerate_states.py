"""States that may degenerate: each beside the scan or the definition, refused where they differ."""

import pytest

from stentor.engine.safe_region import Regions
from stentor.errors import DisagreementError
from stentor_lab.bench import BenchOptions, degenerate_states

TINY = BenchOptions(size=300, repetitions=2, progress=lambda message: None)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(degenerate_states, "LIVE", (80, 20))
    monkeypatch.setattr(degenerate_states, "WORDS", 12)
    monkeypatch.setattr(degenerate_states, "COVERED", (60, 120))
    monkeypatch.setattr(degenerate_states, "MOVERS", (300,))
    monkeypatch.setattr(degenerate_states, "EVENTS", 32)


def test_each_state_stands_beside_the_scan_or_the_definition(small):
    tables = {table.title: table for table in degenerate_states.state_tables(TINY)}
    rows = {title: [row.name for row in table.rows] for title, table in tables.items()}
    covered = ["the definition, 120", "redundant(), 60", "redundant(), 120"]
    regions = ["all regions", "circles", "circles, in a batch"]
    spans = ("since", "from the start")
    names = ("block scan", "be_star_tree", "packed")
    assert rows == {
        "Safe regions among 80 live events": regions,
        "Safe regions among 20 live events": regions,
        "Covered among lists": covered,
        "Covered among LIKE": covered,
        "Covered among RLIKE": covered,
        "Covered among polygons": covered,
        "Doubling: the longest insertion": [
            "block scan",
            "mo_tree",
            "packed",
            "mo_tree, everything in one call",
        ],
        "Adaptation of an opened BE*-Tree": [
            "block scan",
            "be_star_tree, as it was opened",
            "be_star_tree, adapted",
        ],
        "Rows with a `since`": [f"{name}, {span}" for name in names for span in spans],
        "Motion kept after a save, 300 subscribers": [
            "block scan",
            "ap_tree, motion forgotten",
            "ap_tree, motion kept",
        ],
    }
    for table in tables.values():
        assert all(len(row.seconds) == 2 for row in table.rows)
    few, many = (tables[f"Safe regions among {live} live events"].rows[0] for live in (80, 20))
    assert 0 < few.figures["shrunk/event"] < many.figures["shrunk/event"]
    for title in ("Covered among lists", "Covered among LIKE", "Covered among polygons"):
        assert 0 < tables[title].rows[-1].figures["covered"] < 120


def test_circles_that_miss_a_shrunk_region_are_refused(small, monkeypatch):
    monkeypatch.setattr(Regions, "shrunk", lambda *_: None)
    with pytest.raises(DisagreementError, match="'circles' answers otherwise"):
        degenerate_states.state_tables(TINY)


def test_covered_ones_that_the_definition_denies_are_refused(small, monkeypatch):
    monkeypatch.setattr(degenerate_states, "alternatives_cover", lambda wide, narrow: False)
    monkeypatch.setattr(degenerate_states, "LIVE", ())
    with pytest.raises(DisagreementError, match=r"'redundant\(\), 120' answers otherwise"):
        degenerate_states.state_tables(TINY)
