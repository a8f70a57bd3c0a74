"""Logs on the error output: lines for people, or, on request, JSON with time and level."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterable
from typing import Any, Final, Literal

LogFormat = Literal["text", "json"]
_TEXT: Final = "%(asctime)s %(levelname)s %(message)s"


def configure_logs(form: str, loggers: Iterable[str] = ("stentor",)) -> None:
    """Write what *loggers* say to the error output in this *form*."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else logging.Formatter(_TEXT))
    for name in loggers:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)


class JsonFormatter(logging.Formatter):
    """A JSON object in a line: time (UTC), level, logger, message, and an error's traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of *record*."""
        said: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)
