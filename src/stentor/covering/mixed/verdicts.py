"""The answers of a comparison over columns."""

from __future__ import annotations

from typing import Final

#: What the definition says; ASK leaves it to the definition.
NO: Final = 0
YES: Final = 1
ASK: Final = 2
