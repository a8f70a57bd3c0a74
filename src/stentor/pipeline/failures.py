"""Why Spark gave up, in a sentence: the one of Stentor where it was raised by Stentor.

What is raised in a batch, on the driver or in a worker, reaches its caller as text, wrapped in the
words of two languages.
"""

from __future__ import annotations

import re
from typing import Final

from stentor.errors import SettingsError, StentorError
from stentor.pipeline.sources import explained

# Python's last line of a traceback; Java's part begins with a blank line, a state or a frame.
_RAISED: Final = re.compile(
    r"^stentor\.errors\.(\w+): (.*?)(?=\n\n|\n\s*SQLSTATE|\n\s+at |\Z)", re.MULTILINE | re.DOTALL
)


def failure(error: BaseException) -> StentorError | None:
    """What Stentor has to say about *error*, which Spark raised; None where it knows nothing.

    >>> text = "Traceback …" + chr(10) + "stentor.errors.FolderError: the disk is full"
    >>> str(failure(RuntimeError(text + chr(10) + " SQLSTATE: 39000")))
    'the disk is full'
    """
    raised = _RAISED.findall(str(error))
    if not raised:
        return explained(error)
    name, sentence = raised[-1]
    kind = SettingsError if name == SettingsError.__name__ else StentorError
    return kind(sentence.rstrip())
