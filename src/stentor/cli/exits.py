"""Exit codes: documented in `stentor --help`, and the same for every command."""

from __future__ import annotations

from typing import Final

#: Done, and the answer is no: bad lines were found, the event is not wanted, a strict run stopped.
NO: Final = 1
#: The command was called wrongly; Typer's own code for it.
WRONG_USAGE: Final = 2
#: An input cannot be used at all: a missing file, a foreign folder, a broken expression.
UNUSABLE: Final = 3
