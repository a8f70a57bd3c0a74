"""Pictures that commands draw, with matplotlib where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from stentor.errors import SettingsError

#: What a picture's name may end with.
PICTURES: Final = (".png", ".svg", ".pdf")
#: What is missing, and what to do about it.
NO_MATPLOTLIB: Final = "matplotlib is not installed (pip install 'stentor[pictures]')"


def check_picture(path: Path) -> None:
    """A SettingsError where *path* is not the name of a picture."""
    if path.suffix not in PICTURES:
        raise SettingsError(f"--picture is {path}; its name ends with {' or '.join(PICTURES)}")


def check_drawing(path: Path) -> None:
    """A SettingsError where no picture could be drawn into *path*: before any work is done."""
    check_picture(path)
    if not path.parent.is_dir():
        raise SettingsError(f"--picture is {path}; there is no folder {path.parent}")
    if find_spec("matplotlib") is None:
        raise SettingsError(f"--picture: {NO_MATPLOTLIB}")


def pyplot() -> Any:
    """matplotlib's `pyplot`, which draws into files alone; a ModuleNotFoundError without it."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt
