"""SIGTERM and SIGINT: the first stops a stream after its batch, the second at once."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType, TracebackType
from typing import Any, Final, Self

_SHOW_CURSOR: Final = "\x1b[?25h"
_INTERRUPTED: Final = 130


class StopRequest:
    """Whether a stream is to stop: by `request`, or by a signal inside a `with` block."""

    def __init__(self) -> None:
        self._is_requested = False
        self._before: dict[int, Any] = {}

    @property
    def is_requested(self) -> bool:
        """Whether the stream is to stop after its batch."""
        return self._is_requested

    def request(self) -> None:
        """Have the stream stop after its batch."""
        self._is_requested = True

    def listen(self) -> None:
        """Take signals in, also where something else has just claimed them, as PySpark does."""
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.signal(number, self._on_signal)
            self._before.setdefault(number, before)

    def __enter__(self) -> Self:
        self.listen()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._is_requested:
            self._is_requested = True
            return
        if sys.stdout.isatty():
            sys.stdout.write(_SHOW_CURSOR)
            sys.stdout.flush()
        # Nothing is lost: what is not committed is read again. Waiting for threads takes time.
        os._exit(_INTERRUPTED)
