"""The benchmark of covering, and the workloads that it draws."""

import numpy as np
import pytest

from stentor.encoding.check import check
from stentor.errors import SettingsError
from stentor.language.check import check_and_learn
from stentor_lab import bench
from stentor_lab.bench import BenchOptions
from stentor_lab.workloads.interests import SHARES, Interests
from stentor_lab.workloads.rectangles import DOMAIN, Rectangles


def test_the_subject_measures_all_that_the_paper_does():
    result = bench.run("covering", BenchOptions(2000, 1, progress=lambda message: None))
    titles = [table.title for table in result.tables]
    assert [title.partition(":")[0] for title in titles] == [
        *("G_1, 3 attributes", "G_1, 5 attributes", "G_1, 8 attributes"),
        *["Reporting mode"] * 4,
        "Subscriptions of the whole language, reduced on one core",
    ]
    assert [row.name for row in result.tables[0].rows] == [
        *("row scan", "vector scan", "Z-curve", "k-d tree")
    ]
    assert [row.name for row in result.tables[3].rows] == [f"k = {k}" for k in range(1, 7)]
    arriving, at_once = result.tables[-1].rows
    assert at_once.figures["forwarded"] <= arriving.figures["forwarded"] < 2000


def test_rectangles_come_before_they_go_and_go_once():
    drawn = Rectangles(seed=3, attributes=4, unsubscribing=0.4).commands(1000)
    standing: set[int] = set()
    arrived = 0
    for row in drawn.rows.tolist():
        if row >= 0:
            assert row == arrived
            arrived += 1
            standing.add(row)
        else:
            standing.remove(~row)
    assert drawn.low.shape == drawn.high.shape == (arrived, 4)
    assert ((drawn.low >= 0) & (drawn.low <= drawn.high) & (drawn.high < DOMAIN)).all()
    assert 0.35 < (drawn.rows < 0).mean() < 0.45
    assert np.array_equal(Rectangles(3, 4, 0.4).commands(1000).rows, drawn.rows)


def test_rectangles_are_subscriptions_too():
    recipe = Rectangles(attributes=3)
    drawn = recipe.commands(100)
    columns = recipe.columns(drawn)
    check(columns)
    assert columns.low.reshape(-1, 3).tolist() == drawn.low.tolist()
    assert columns.high.reshape(-1, 3).tolist() == drawn.high.tolist()


@pytest.mark.parametrize("wrong", [{"attributes": 0}, {"attributes": 17}, {"unsubscribing": 0.5}])
def test_rectangles_that_cannot_be_drawn_are_refused(wrong):
    with pytest.raises(SettingsError):
        Rectangles(**wrong)


def test_interests_are_the_same_each_time_and_are_all_understood():
    recipe = Interests(seed=2)
    texts = list(recipe.texts(500))
    assert texts == list(recipe.texts(500))
    assert texts != list(Interests(seed=3).texts(500))
    schema = recipe.schema
    for text in texts:
        assert not check_and_learn(text, schema, where="here")[1].never
    assert len(SHARES) == 9
