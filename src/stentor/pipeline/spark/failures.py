"""Why Spark gave up, in a sentence: the one of Stentor where it was raised by Stentor.

What is raised in a batch, on the driver or in a worker, reaches its caller as text, wrapped in the
words of two languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from stentor.errors import RecordError, SettingsError, StentorError
from stentor.pipeline.sources.open import explained

# Python's last line of a traceback; Java's part begins with a blank line, a state or a frame.
_RAISED: Final = re.compile(
    r"^stentor\.errors\.(\w+): (.*?)(?=\n\n|\n\s*SQLSTATE|\n\s+at |\Z)", re.MULTILINE | re.DOTALL
)

#: From here on Spark tells of its plan, for pages.
_PLAN: Final = "=== Streaming Query ==="
#: What `match` has a query raise.
_RAISED_BY_QUERY: Final = re.compile(
    r"\[USER_RAISED_EXCEPTION\] (.*?)(?=\s*SQLSTATE|\n\s+at |\Z)", re.DOTALL
)
#: Those whose callers tell them from others.
_KINDS: Final = {kind.__name__: kind for kind in (RecordError, SettingsError)}


@contextmanager
def in_sentences() -> Iterator[None]:
    """Have what Spark raises inside be one of Stentor's errors: a sentence, if it has one."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        known = failure(error)
        if known is None:
            told, _, _ = str(error).partition(_PLAN)
            raise StentorError(f"Spark gave up: {told.rstrip()}") from None
        raise known from None


def failure(error: BaseException) -> StentorError | None:
    """What Stentor has to say about *error*, which Spark raised; None where it knows nothing.

    >>> text = "Traceback …" + chr(10) + "stentor.errors.FolderError: the disk is full"
    >>> str(failure(RuntimeError(text + chr(10) + " SQLSTATE: 39000")))
    'the disk is full'
    """
    raised = _RAISED.findall(str(error))
    if raised:
        name, sentence = raised[-1]
        return _KINDS.get(name, StentorError)(sentence.rstrip())
    asked = _RAISED_BY_QUERY.search(str(error))
    return explained(error) if asked is None else RecordError(asked[1].rstrip())
