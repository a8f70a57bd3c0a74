"""What a packed index can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stentor.errors import SettingsError

#: Each alternative goes where matching it costs the least: `cost_model.py`.
COST: Final = "cost"
#: What `home` may be.
HOME_NAMES: Final = (COST, "lists", "nodes", "blocks")


@dataclass(frozen=True)
class PackedSettings:
    """The settings of a packed index."""

    pending: int = 512  # alternatives that are in no segment yet, at most
    fan_in: int = 4  # segments of like size that become one
    foreground: int = 2048  # alternatives of a merge that no thread is started for
    home: str = COST  # where alternatives go, as far as they can: what costs least, or one home

    def __post_init__(self) -> None:
        for name, least in (("pending", 0), ("fan_in", 1), ("foreground", 0)):
            if getattr(self, name) < least:
                got = getattr(self, name)
                raise SettingsError(f"packed: {name}={got}; expected at least {least}")
        if self.home not in HOME_NAMES:
            expected = ", ".join(HOME_NAMES)
            raise SettingsError(f"packed: home={self.home}; expected one of {expected}")
