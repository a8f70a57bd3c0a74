"""Regions inside and apart from one another, against points that lie on their borders."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from stentor.covering.implies.regions import area_inside, area_of, areas_apart
from stentor.model import Box, Circle, Point, Polygon
from stentor.model.geometry import EARTH_RADIUS, distance

ANGLES = st.floats(0.0, 2.0 * math.pi)
#: How far beyond or short of touching: around the margin on both sides.
NEARLY = st.sampled_from([-1.0, -1e-3, -1e-5, -1e-7, 0.0, 1e-7, 1e-6, 1e-5, 1e-3, 1.0, 100.0])
PLACES = st.builds(Point, st.floats(-180.0, 180.0), st.floats(-90.0, 90.0))


def towards(place, angle, metres):
    """The point *metres* away from *place* in the direction of *angle* on the globe."""
    arc = metres / EARTH_RADIUS
    y, x = math.radians(place.y), math.radians(place.x)
    north = math.sin(y) * math.cos(arc) + math.cos(y) * math.sin(arc) * math.cos(angle)
    meridian = math.cos(arc) * math.cos(y) - math.sin(arc) * math.sin(y) * math.cos(angle)
    # The arc sine of nearly 1 would be off by millimetres at a pole.
    latitude = math.atan2(north, math.hypot(meridian, math.sin(arc) * math.sin(angle)))
    east = math.atan2(
        math.sin(angle) * math.sin(arc) * math.cos(y),
        math.cos(arc) - math.sin(y) * math.sin(latitude),
    )
    longitude = math.degrees(x + east)
    longitude -= 360.0 * round(longitude / 360.0)
    return Point(max(-180.0, min(180.0, longitude)), math.degrees(latitude))


def contains(region, point):
    return (
        region.contains(point, None, False)
        if isinstance(region, Circle)
        else region.contains(point)
    )


def border(region, angles):
    """Points on the border of *region*, or next to it."""
    if isinstance(region, Circle):
        return [towards(region.centre, angle, region.radius) for angle in angles]
    shares = [angle / (2.0 * math.pi) for angle in angles]
    west, south, east, north = region.west, region.south, region.east, region.north
    width = east - west if west <= east else east - west + 360.0
    xs = [west + share * width for share in (0.0, 1.0, *shares)]
    xs = [x - 360.0 if x > 180.0 else x for x in xs] + [west, east]
    ys = [south + share * (north - south) for share in (0.0, 1.0, *shares)]
    return [Point(x, y) for x in xs for y in (south, north, *ys)]


@st.composite
def nearly_nested(draw):
    """Two regions of which one touches the other from inside, or nearly so."""
    centre = draw(PLACES)
    radius = draw(st.sampled_from([0.0, 1.0, 1e3, 1e5, 5e6, 9e6]))
    inner = Circle(centre, radius)
    shift = draw(st.sampled_from([0.0, 1e-6, 1.0, 500.0, 1e5, 1e6]))
    middle = towards(centre, draw(ANGLES), shift)
    outer = Circle(middle, max(0.0, radius + shift + draw(NEARLY)))
    return inner, outer


@st.composite
def boxes(draw):
    south, north = sorted((draw(st.floats(-90.0, 90.0)), draw(st.floats(-90.0, 90.0))))
    west = draw(st.floats(-180.0, 180.0))
    width = draw(st.sampled_from([0.0, 0.01, 1.0, 40.0, 120.0, 200.0, 359.0]))
    east = west + width
    return Box(west, south, east - 360.0 if east > 180.0 else east, north)


@st.composite
def circle_and_box(draw):
    """A circle that reaches the farthest or the nearest corner of a box, or nearly so."""
    box = draw(boxes())
    centre = draw(
        PLACES | st.sampled_from([Point(box.west, box.south), Point(box.east, box.north)])
    )
    reaches = [distance(*centre, *corner, False) for corner in border(box, [])]
    radius = draw(st.sampled_from([max(reaches), max(reaches), min(reaches)])) + draw(NEARLY)
    return Circle(centre, max(0.0, radius)), box


PAIRS = nearly_nested() | circle_and_box() | st.tuples(boxes(), boxes())


@given(PAIRS, st.lists(ANGLES, min_size=4, max_size=12))
@settings(max_examples=settings.default.max_examples * 5)
def test_no_point_of_what_is_inside_lies_outside(two, angles):
    for inner, outer in (two, two[::-1]):
        if area_inside(area_of(inner, None, False), area_of(outer, None, False)):
            for point in border(inner, angles):
                assert contains(outer, point) or not contains(inner, point)


@given(PAIRS, st.lists(ANGLES, min_size=4, max_size=12))
@settings(max_examples=settings.default.max_examples * 5)
def test_no_point_lies_in_two_regions_that_are_apart(two, angles):
    one, other = two
    if not areas_apart(area_of(one, None, False), area_of(other, None, False)):
        return
    for region in two:
        for point in border(region, angles):
            assert not (contains(one, point) and contains(other, point))


@given(PLACES, st.sampled_from([1.0, 1e3, 1e5, 5e6]), st.sampled_from([0.5, 500.0, 1e5]), ANGLES)
def test_what_is_inside_by_more_than_the_margin_is_found(centre, radius, shift, angle):
    inner = area_of(Circle(centre, radius), None, False)
    middle = towards(centre, angle, shift)
    wider = area_of(Circle(middle, (radius + shift) * (1.0 + 1e-8) + 1e-4), None, False)
    assert area_inside(inner, wider)


SQUARE = Polygon((tuple(Point(x, y) for x, y in ((0, 0), (9, 0), (9, 9), (0, 9), (0, 0))),))


@given(boxes(), st.lists(ANGLES, min_size=4, max_size=8))
@settings(max_examples=settings.default.max_examples * 3)
def test_no_point_of_a_box_inside_a_polygon_lies_outside_of_it(box, angles):
    small = Box(
        abs(box.west) / 20, abs(box.south) / 10, abs(box.west) / 20 + 0.7, abs(box.south) / 10 + 0.7
    )
    if area_inside(small, SQUARE):
        assert all(SQUARE.contains(point) for point in border(small, angles))
    elif small.east < 8.9 and small.north < 8.9 and min(small.west, small.south) > 0.1:
        raise AssertionError("it keeps clear of all edges")


FLAT = st.floats(-1e6, 1e6)


@given(
    st.builds(Point, FLAT, FLAT),
    st.sampled_from([0.0, 1e-9, 1.0, 1e5]),
    st.sampled_from([0.0, 1e-9, 0.5, 1e4]),
    st.lists(ANGLES, min_size=4, max_size=12),
    st.sampled_from([-1e-6, -1e-12, 0.0, 1e-12, 1e-8, 1e-3]),
)
@settings(max_examples=settings.default.max_examples * 3)
def test_on_a_plane_no_point_of_what_is_inside_lies_outside(centre, radius, shift, angles, share):
    inner = Circle(centre, radius)
    middle = Point(centre.x + shift * math.cos(angles[0]), centre.y + shift * math.sin(angles[0]))
    outer = Circle(middle, max(0.0, (radius + shift) * (1.0 + share)))
    held = area_inside(area_of(inner, None, True), area_of(outer, None, True))
    assert held or share < 1e-3 or shift < 1e-6
    for angle in angles if held else ():
        point = Point(centre.x + radius * math.cos(angle), centre.y + radius * math.sin(angle))
        assert outer.contains(point, None, True) or not inner.contains(point, None, True)
