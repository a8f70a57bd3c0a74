"""AP+ with safe regions delivers what AP+ delivers, at every timestamp."""

import pytest

from stentor.errors import DisagreementError
from stentor_lab.reproduce.papers import ap_tree_regions
from stentor_lab.reproduce.papers.ap_tree_regions import Crowd, agree, followed
from stentor_lab.workloads.moving_keyword import CITY, MovingKeyword
from stentor_lab.workloads.spatial_keyword import SpatialKeyword


def crowd(seed, subscribers=300, live=1000):
    """Few words and large circles, so that much changes at each timestamp."""
    words = SpatialKeyword(
        seed, vocabulary=60, stop_words=2, space=CITY, smallest=0.01, largest=0.05
    )
    recipe = MovingKeyword(words, velocity=4.0)
    return Crowd(recipe, subscribers, 100, recipe.live_messages(live))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("live", [20, 1000])
def test_safe_regions_change_nothing_that_is_delivered(seed, live):
    some = crowd(seed, live=live)
    plain = followed(some, "ap_tree paper", is_safe=False)
    assert sum(len(one[-1]) for one in plain.answers) > 100
    assert sum(len(one[0]) for one in plain.answers) > 0
    for name in ("ap_tree paper", "packed", "scan"):
        agree(plain, followed(some, name, is_safe=True), name)


def test_a_run_that_forgets_new_messages_is_found_out(monkeypatch):
    some = crowd(1, live=20)
    monkeypatch.setattr(ap_tree_regions.Regions, "shrunk", lambda *_: None)
    plain = followed(some, "ap_tree paper", is_safe=False)
    with pytest.raises(DisagreementError, match="delivers otherwise than AP"):
        agree(plain, followed(some, "ap_tree paper", is_safe=True), "AP+-Tree-Safe")


def test_who_stays_inside_is_not_asked():
    some = crowd(2, live=20)
    plain = followed(some, "ap_tree paper", is_safe=False)
    safe = followed(some, "ap_tree paper", is_safe=True)
    assert plain.told > 0
    assert safe.told != plain.told
