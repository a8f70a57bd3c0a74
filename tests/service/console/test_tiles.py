"""A map of the user's own: vector tiles of a `.pmtiles` file, read by ranges and drawn."""

import gzip
import struct

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.support.servers import Server

pytestmark = pytest.mark.xdist_group("browser")  # one browser, one after the other
LIVE = "() => document.querySelector('#state').dataset.state === 'live'"


def varint(value):
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def field(number, content):
    if isinstance(content, int):
        return varint(number * 8) + varint(content)
    return varint(number * 8 + 2) + varint(len(content)) + content


def moves(points):
    """A line through *points*, of a tile of 4,096 by 4,096."""
    zigzag = lambda value: value * 2 if value >= 0 else -value * 2 - 1  # noqa: E731
    (x, y), *others = points
    found = varint(9) + varint(zigzag(x)) + varint(zigzag(y)) + varint(len(others) * 8 + 2)
    for one in others:
        found += varint(zigzag(one[0] - x)) + varint(zigzag(one[1] - y))
        x, y = one
    return found


def tile():
    """One road from corner to corner, and a town that has a name."""
    road = field(2, field(3, 2) + field(4, moves([(0, 0), (4096, 4096)])))
    roads = field(1, b"roads") + road + field(15, 2)
    town = field(2, field(2, bytes([0, 0])) + field(3, 1) + field(4, moves([(2048, 2048)])[:-1]))
    named = field(1, b"places") + town + field(3, b"name") + field(4, field(1, b"Ort"))
    return gzip.compress(field(3, roads) + field(3, named + field(15, 2)))


def pmtiles():
    """Zooms 0 and 1, all of them the same tile."""
    data = tile()
    entries = [(0, 5, len(data), 0)]
    root = varint(len(entries))
    root += b"".join(varint(one[0]) for one in entries)
    root += b"".join(varint(one[1]) for one in entries)
    root += b"".join(varint(one[2]) for one in entries)
    root += b"".join(varint(one[3] + 1) for one in entries)
    root = gzip.compress(root)
    places = (127, len(root), 127 + len(root), 0, 127 + len(root), 0, 127 + len(root), len(data))
    counts = (5, 1, 1)
    header = b"PMTiles\3" + struct.pack("<8Q", *places) + struct.pack("<3Q", *counts)
    header += bytes([1, 2, 2, 1, 0, 1]) + bytes(127 - len(header) - 6)
    return header + root + data


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiles")
    file = folder / "city.pmtiles"
    file.write_bytes(pmtiles())
    with Server(folder / "service", index="scan", console=True, map=str(file)) as one:
        yield one


def test_the_map_is_read_by_ranges(served):
    with served.http() as http:
        part = http.get("/map.pmtiles", headers={"Range": "bytes=0-6"})
        assert (part.status_code, part.content) == (206, b"PMTiles")


def test_tiles_of_ones_own_map_are_drawn(served, open_page, screenshot):
    page = open_page(served.url + "/")
    page.wait_for_function(LIVE)
    page.evaluate("stentor.stage.view.lookAt([-90, 40], 3)")
    page.wait_for_function("() => stentor.stage.tiles?._tiles.get('1/0/0')?.length === 2")
    layers = page.evaluate("() => stentor.stage.tiles._tiles.get('1/0/0')")
    assert [one["name"] for one in layers] == ["roads", "places"]
    assert layers[0]["features"][0]["parts"] == [[0, 0, 4096, 4096]]
    assert layers[1]["features"][0]["name"] == "Ort"
    screenshot(page, "console-tiles")
    wanted = page.evaluate(
        """() => {
            const { view } = stentor.stage;
            const canvas = document.querySelector("#map canvas");
            const count = (tiles) => {
                stentor.stage.setTiles(tiles);
                stentor.stage._frame(performance.now());
                const { width, height } = canvas;
                return canvas.getContext("2d").getImageData(0, 0, width, height).data.join();
            };
            const { tiles } = stentor.stage;
            return count(tiles) !== count(null);
        }"""
    )
    assert wanted, "the tiles make a difference"
