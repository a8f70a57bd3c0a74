"""Why Spark gave up, in a sentence: the one of Stentor where it was raised by Stentor.

What is raised in a batch, on the driver or in a worker, reaches its caller as text, wrapped in the
words of two languages. Where Java itself is gone, which runs in a process of its own and may be
killed or run out of memory, Python meets a refused connection: `java_ended` finds the cause.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from stentor.errors import JavaEndedError, RecordError, SettingsError, StentorError
from stentor.pipeline.secrets import without_secrets
from stentor.pipeline.sources import explained

#: Seconds until a process that has closed its connections has ended.
_SOON: Final = 5.0
#: Java's own codes for a lack of memory, and that of a shell for SIGKILL.
_MEMORY: Final = (3, 52, 137, -signal.SIGKILL)
# Python's last line of a traceback; Java's part begins with a blank line, a state or a frame.
_RAISED: Final = re.compile(
    r"^stentor\.errors\.(\w+): (.*?)(?=\n\n|\n\s*SQLSTATE|\n\s+at |\Z)", re.MULTILINE | re.DOTALL
)
#: From here on Spark prints its plan, for pages.
_PLAN: Final = "=== Streaming Query ==="
#: What `match` has a query raise.
_RAISED_BY_QUERY: Final = re.compile(
    r"\[USER_RAISED_EXCEPTION\] (.*?)(?=\s*SQLSTATE|\n\s+at |\Z)", re.DOTALL
)
#: Those that callers distinguish.
_KINDS: Final = {kind.__name__: kind for kind in (RecordError, SettingsError)}


@contextmanager
def as_stentor_errors() -> Iterator[None]:
    """Have what Spark raises inside be one of Stentor's errors: a sentence, if it has one."""
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError, EOFError) as error:
        ended = java_ended(error)
        if ended is not None:
            raise ended from None
        if isinstance(error, (ConnectionError, EOFError)):
            raise
        known = failure(error)
        if known is None:
            text, _, _ = str(error).partition(_PLAN)
            raise StentorError(f"Spark gave up: {without_secrets(text.rstrip())}") from None
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
        return _KINDS.get(name, StentorError)(without_secrets(sentence.rstrip()))
    raised_by_query = _RAISED_BY_QUERY.search(str(error))
    return explained(error) if raised_by_query is None else RecordError(raised_by_query[1].rstrip())


def java_ended(error: BaseException) -> JavaEndedError | None:
    """What there is to say of *error* where it came because Java has ended; else None."""
    from py4j.protocol import Py4JNetworkError
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if not isinstance(process, subprocess.Popen):  # Java has started Python, not the reverse
        return None
    is_cut_off = isinstance(error, (Py4JNetworkError, ConnectionError, EOFError))
    try:
        code = process.wait(_SOON if is_cut_off else 0)
    except subprocess.TimeoutExpired:
        return None
    return JavaEndedError(_sentence(code))


def _sentence(code: int) -> str:
    """What became of Java, and what to do.

    >>> _sentence(1).partition(";")[0]
    'the Java process that Spark runs in has ended (exit code 1)'
    """
    how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    advice = (
        "the system does this where memory is short: free some, or give Java less or more of it "
        "(spark.driver.memory, SPARK_DRIVER_MEMORY)"
        if code in _MEMORY
        else "what it wrote to the log may say why"
    )
    return (
        f"the Java process that Spark runs in has ended ({how}); {advice}. Nothing is lost: what "
        "is committed stays, and a stream that is started again reads the rest"
    )
