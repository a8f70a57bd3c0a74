"""Every notebook of the documents runs, and prints what it is kept with."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from codespell_lib import main as codespell
from nbclient import NotebookClient

from tests.docs.documents import NOTEBOOKS, ROOT, prose

#: The tag of cells that print times, which are others on every machine.
TIMES = "times"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # of Jupyter's own packages
def test_a_notebook_prints_what_it_is_kept_with(path: Path) -> None:
    kept = nbformat.read(path, as_version=4)
    ran = nbformat.from_dict(kept)
    NotebookClient(ran, timeout=600, resources={"metadata": {"path": path.parent}}).execute()
    shown = 0
    for before, after in zip(kept.cells, ran.cells, strict=True):
        if before.cell_type == "code" and TIMES not in before.metadata.get("tags", []):
            assert texts(after) == texts(before), before.source
        if before.cell_type == "code":
            assert pictures(after) == pictures(before), before.source
            shown += pictures(before)
    assert shown, "a notebook that shows no picture could be a page"


def texts(cell: Any) -> list[str]:
    """What *cell* prints and answers, but for warnings; pictures are not compared."""
    streams = [one.text for one in cell.outputs if one.get("name") == "stdout"]
    answers = [
        one.data["text/plain"]
        for one in cell.outputs
        if "data" in one and "image/png" not in one.data
    ]
    return ["".join(streams), *answers]


def pictures(cell: Any) -> int:
    """How many pictures *cell* draws."""
    return sum("image/png" in one.get("data", {}) for one in cell.outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_spelled_right(path: Path, tmp_path: Path) -> None:
    text = tmp_path / "prose.md"
    text.write_text(prose(path), "utf-8")
    assert codespell("--ignore-words", str(ROOT / "docs" / "words.txt"), str(text)) == 0
