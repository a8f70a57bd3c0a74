"""The table of ranges: right after any history, and what a listener is told of it."""

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stentor.encoding.hilbert import HilbertCurve
from stentor.errors import SettingsError
from stentor.index.mics.range_table.table import Coverage, RangeTable, Withdrawal, covers, ranges_of

#: Figure 3: the ranges of the subscription.
S2 = [(32, 35), (45, 46), (50, 55)]
LAST = 2**64 - 1


def numbers_in(by_id):
    return {
        number
        for ranges in by_id.values()
        for low, high in ranges
        for number in range(low, high + 1)
    }


class TableMachine(RuleBasedStateMachine):
    """A table and its listener, who keeps what it is told."""

    @initialize(gap=st.sampled_from([0, 0, 1, 4]), base=st.sampled_from([0, LAST - 4000]))
    def start(self, gap, base):
        self.table, self.gap, self.base = RangeTable(gap), gap, base
        self.subscribed, self.heard = {}, {}

    @rule(data=st.data(), id=st.integers(0, 20), last=st.sampled_from([20, 100, 3000]))
    def subscribe(self, data, id, last):
        low = st.integers(0, last)
        length = st.sampled_from([0, 0, 1, 2, 9, last // 4])
        drawn = data.draw(st.lists(st.tuples(low, length), max_size=5))
        ranges = [(self.base + low, self.base + low + length) for low, length in drawn]
        whole = self.table.covered(ranges) is Coverage.TOTALLY
        announced = self.table.subscribe(id, ranges)
        assert bool(announced) != whole
        self.subscribed.setdefault(id, []).extend(ranges)
        self.heard.setdefault(id, []).extend(announced)

    @precondition(lambda self: self.subscribed)
    @rule(data=st.data())
    def unsubscribe(self, data):
        id = data.draw(st.sampled_from(sorted(self.subscribed)))
        promoted, withdrawn = self.table.unsubscribe(id)
        del self.subscribed[id]
        for other, ranges in promoted.items():
            self.heard[other].extend(ranges)
        assert sorted(self.heard.pop(id)) == sorted(withdrawn)

    @rule(number=st.integers(0, 130))
    def look_up(self, number):
        is_heard = self.base + number in numbers_in(self.heard)
        assert self.table.covers(self.base + number) == is_heard
        assert self.table.covers_all([self.base + number]).tolist() == [is_heard]

    @rule(low=st.integers(0, 130), lengths=st.lists(st.integers(0, 9), max_size=3))
    def meet(self, low, lengths):
        query = [
            (self.base + low + 20 * at, self.base + low + 20 * at + length)
            for at, length in enumerate(lengths)
        ]
        is_met = bool(numbers_in({0: query}) & numbers_in(self.heard))
        assert self.table.meets(ranges_of(query)).tolist() == [is_met]

    @invariant()
    def the_listener_wants_what_is_subscribed(self):
        self.table.check()
        heard, wanted = numbers_in(self.heard), numbers_in(self.subscribed)
        assert heard == numbers_in({0: self.table.ranges()})
        assert heard == wanted if self.gap == 0 else heard >= wanted
        announced = {id: sorted(ranges) for id, ranges in self.heard.items() if ranges}
        assert announced == {id: sorted(ranges) for id, ranges in self.table.announced().items()}


TestAnyHistory = TableMachine.TestCase
TestAnyHistory.settings = settings(max_examples=max(1, settings.default.max_examples // 2))


def test_figure_3_is_looked_up_as_the_prose_says():
    table = RangeTable()
    table.subscribe("s2", S2)
    assert [table.covers(number) for number in (28, 52, 50)] == [False, True, True]
    # p3 = 50 lies in the augmentation only, so that s1 itself must be asked.
    assert HilbertCurve(2, 3).cells([50]).tolist() == [[6, 2]]


def test_figure_4_covering_is_total_or_partial():
    assert covers([(0, 9), (20, 29)], [(1, 5), (20, 29)]) is Coverage.TOTALLY
    assert covers([(0, 9), (20, 29)], [(1, 5), (25, 35)]) is Coverage.PARTLY
    assert covers([(0, 9)], [(10, 12)]) is Coverage.NOT


def test_a_subscription_is_subsumed_by_two_that_touch():
    table = RangeTable()
    table.subscribe("left", [(0, 4)])
    table.subscribe("right", [(5, 9)])
    assert table.ranges() == [(0, 9)]
    assert table.subscribe("across", [(3, 7)]) == []
    assert table.passive() == {"across": [(3, 7)]}


def test_covered_ranges_leave_the_table_and_come_back():
    table = RangeTable()
    table.subscribe("small", [(10, 12), (20, 22)])
    assert table.subscribe("large", [(5, 30)]) == [(5, 30)]
    assert table.ranges() == [(5, 30)]
    assert table.unsubscribe("large") == Withdrawal({}, [(5, 30)])
    assert table.ranges() == [(10, 12), (20, 22)]


def test_what_only_a_leaving_one_covered_is_promoted_and_nothing_else():
    table = RangeTable()
    table.subscribe("large", [(0, 100)])
    for id, ranges in {"a": [(10, 20)], "b": [(12, 15)], "c": [(40, 50), (90, 120)]}.items():
        table.subscribe(id, ranges)
    promoted, _ = table.unsubscribe("large")
    assert promoted == {"a": [(10, 20)], "c": [(40, 50)]}
    assert table.passive() == {"b": [(12, 15)]}


def test_passive_ranges_across_two_leaving_ones_are_promoted():
    table = RangeTable()
    table.subscribe("leaving", [(0, 4), (5, 20)])
    table.subscribe("within", [(0, 4)])
    table.subscribe("across", [(2, 18)])
    assert table.unsubscribe("leaving").promoted == {"within": [(0, 4)], "across": [(2, 18)]}
    assert table.ranges() == [(0, 18)]


def test_a_range_over_many_others_leaves_all_their_gaps_behind():
    table = RangeTable()
    islands = [(start, start + 1) for start in range(0, 4000, 4)]
    table.subscribe("islands", islands)
    table.subscribe("sea", [(0, 4000)])
    assert table.ranges() == [(0, 4000)]
    assert table.unsubscribe("sea") == Withdrawal({}, [(0, 4000)])
    table.check()
    assert table.ranges() == islands


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
def test_of_many_alike_one_is_told_whichever_leaves_first(order):
    table = RangeTable()
    ids = range(500)
    for id in ids:
        table.subscribe(id, [(7, 9), (20, 21)])
    assert table.announced() == {0: [(7, 9), (20, 21)]}
    for id in ids[::order]:
        assert len(table.announced()) == 1
        table.unsubscribe(id)
    table.check()
    assert table.ranges() == []


def test_imperfect_merging_fills_gaps_up_to_the_threshold_and_tells_them():
    table = RangeTable(gap=2)
    table.subscribe("a", [(0, 4)])
    assert table.subscribe("b", [(7, 9)]) == [(5, 9)]
    assert table.subscribe("c", [(13, 15)]) == [(13, 15)]
    assert table.ranges() == [(0, 9), (13, 15)]
    assert table.subscribe("gap", [(5, 6)]) == []
    assert table.unsubscribe("b") == Withdrawal({"gap": [(5, 6)]}, [(5, 9)])
    assert table.ranges() == [(0, 6), (13, 15)]


def test_the_ends_of_the_number_space_are_numbers_like_others():
    table = RangeTable(gap=3)
    table.subscribe("a", [(LAST - 1, LAST)])
    assert table.subscribe("b", [(0, LAST - 5)]) == [(0, LAST - 2)]
    assert table.ranges() == [(0, LAST)]
    table.unsubscribe("a")
    assert table.ranges() == [(0, LAST - 2)]
    table.unsubscribe("b")
    assert table.ranges() == []


def test_a_range_may_begin_at_the_last_number():
    table = RangeTable()
    for id, low in enumerate([LAST, LAST - 2, LAST]):
        table.subscribe(id, [(low, low)])
    assert table.passive() == {2: [(LAST, LAST)]}
    assert [table.covers(LAST - back) for back in range(4)] == [True, False, True, False]
    assert table.unsubscribe(0) == Withdrawal({2: [(LAST, LAST)]}, [(LAST, LAST)])
    table.check()
    assert table.ranges() == [(LAST - 2, LAST - 2), (LAST, LAST)]


@pytest.mark.parametrize("gap", [0, 3])
def test_many_ranges_come_and_go(gap):
    curve = HilbertCurve(3, 5)
    corners = [(x, y, z) for x in range(0, 29, 3) for y in range(0, 29, 2) for z in range(0, 29, 5)]
    far = [tuple(end + 3 for end in corner) for corner in corners]
    ranges = curve.ranges(corners, far)
    table = RangeTable(gap)
    table.subscribe_all(range(len(corners)), ranges)
    for id in range(0, len(corners), 2):
        table.unsubscribe(id)
    table.check()
    kept = RangeTable()
    for id in range(1, len(corners), 2):
        kept.subscribe(id, ranges.of(id))
    if gap == 0:
        assert table.ranges() == kept.ranges()
    assert numbers_in({0: table.ranges()}) >= numbers_in({0: kept.ranges()})
    for id in range(1, len(corners), 2):
        table.unsubscribe(id)
    table.check()
    assert table.ranges() == []
    assert len(table) == 0


def test_those_who_went_leave_no_memory_behind():
    table = RangeTable()
    ranges = HilbertCurve(2, 4).ranges([(1, 1)] * 100, [(6, 9)] * 100)
    sizes = []
    for _ in range(60):
        table.subscribe_all(range(100), ranges)
        sizes.append(table.nbytes)
        for id in range(100):
            table.unsubscribe(id)
        table.check()
    assert max(sizes[30:]) == max(sizes[:30])


def test_wrong_ranges_and_gaps_are_refused():
    table = RangeTable()
    table.subscribe("a", [(0, 9)])
    for asks in (lambda ranges: table.subscribe("b", ranges), table.covered):
        with pytest.raises(SettingsError, match="before it begins"):
            asks([(4, 3)])
        with pytest.raises(SettingsError, match="pairs"):
            asks([(1, 2, 3), (4, 5, 6)])
        for wrong in ([(-1, 3)], [(0.5, 3)], [(0, 2**64)]):
            with pytest.raises(SettingsError, match="whole numbers"):
                asks(wrong)
    for wrong in (-1, 0.5, 2**64):
        with pytest.raises(SettingsError, match="whole numbers"):
            table.covers(wrong)
    with pytest.raises(SettingsError, match="2 subscriptions and ranges of 1"):
        table.subscribe_all(["b", "c"], HilbertCurve(2, 3).ranges([(1, 1)], [(2, 2)]))
    assert len(table) == 1
    table.check()
    with pytest.raises(SettingsError, match="perfect merging"):
        RangeTable(gap=-1)


def test_nothing_is_known_of_a_stranger():
    assert RangeTable().unsubscribe("nobody") == Withdrawal({}, [])


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize("seed", range(20))
def test_subscriptions_of_several_ranges_that_overlap_come_and_go(seed, gap):
    """What reaches into two holes that one subscription leaves is needed for either."""
    draw, table, current = random.Random(seed), RangeTable(gap), []
    for id in range(60):
        if current and draw.random() < 0.45:
            table.unsubscribe(current.pop(draw.randrange(len(current))))
        else:
            lows = [draw.randrange(40) for _ in range(draw.randrange(1, 5))]
            table.subscribe(id, [(low, min(40, low + draw.randrange(13))) for low in lows])
            current.append(id)
        table.check()


def test_a_range_across_two_holes_is_promoted_for_the_second():
    table = RangeTable()
    table.subscribe("leaves", [(10, 19), (20, 29)])
    table.subscribe("first", [(10, 19)])
    table.subscribe("across", [(15, 25)])
    assert table.unsubscribe("leaves").promoted == {"first": [(10, 19)], "across": [(15, 25)]}
    table.check()
