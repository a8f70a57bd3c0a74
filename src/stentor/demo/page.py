"""The afternoon as one page that moves: the console's map and what the tables tell, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from stentor.demo.names import DISTRICTS, degrees
from stentor.service.pages import outlines, self_contained

TITLE: Final = "An afternoon in Saltmere"
#: Minutes east of Greenwich: what Saltmere's clocks show.
ZONE: Final = 120


def write_page(pipeline: Path, path: Path) -> None:
    """Write what the tables of *pipeline* tell into *path*, a page that needs no server."""
    from stentor.pipeline.tables.recording import read_recording

    recording = read_recording(pipeline) | {
        "title": TITLE,
        "zone": ZONE,
        "places": [
            [district.name, *degrees((district.east, district.north)), 2 * district.spread]
            for district in DISTRICTS
        ],
    }
    page = self_contained(
        "past.html", {"outlines": outlines(), "recording": recording}, title=TITLE
    )
    path.write_text(page, "utf-8")
