"""Stentor: each event reaches exactly those who want it.

    >>> import stentor
    >>> engine = stentor.Engine()
    >>> engine.subscribe("ana", "has_all(text, 'ipad') AND price < 300")
    Changes(added=[], removed=[])
    >>> engine.publish({"id": "e1", "text": "iPad discount", "price": 299})
    ['ana']

Nothing heavy is imported until it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stentor import engine as engine
    from stentor import errors as errors
    from stentor import model as model
    from stentor.engine import Engine
    from stentor.engine.explanation import Explanation
    from stentor.engine.redundant import Redundant
    from stentor.engine.report import Report, WantedBy
    from stentor.engine.safe_region import SafeRegion
    from stentor.engine.why_not import Rejection, RejectionCount
    from stentor.errors import StentorError
    from stentor.language.builder import box, col, here, multipolygon, polygon, weight
    from stentor.language.evaluate import evaluate
    from stentor.language.limits import Limits
    from stentor.language.parser import parse
    from stentor.language.printer import to_text
    from stentor.model import Changes, Event, EventChanges, Schema, Subscription
    from stentor.wire.limits import RecordLimits
    from stentor.wire.mapping import mapped

_HOMES = {
    "Changes": "stentor.model",
    "Engine": "stentor.engine",
    "Event": "stentor.model",
    "EventChanges": "stentor.model",
    "Explanation": "stentor.engine.explanation",
    "Limits": "stentor.language.limits",
    "Schema": "stentor.model",
    "StentorError": "stentor.errors",
    "Subscription": "stentor.model",
    "RecordLimits": "stentor.wire.limits",
    "Redundant": "stentor.engine.redundant",
    "Rejection": "stentor.engine.why_not",
    "RejectionCount": "stentor.engine.why_not",
    "Report": "stentor.engine.report",
    "SafeRegion": "stentor.engine.safe_region",
    "WantedBy": "stentor.engine.report",
    "box": "stentor.language.builder",
    "col": "stentor.language.builder",
    "evaluate": "stentor.language.evaluate",
    "here": "stentor.language.builder",
    "mapped": "stentor.wire.mapping",
    "multipolygon": "stentor.language.builder",
    "parse": "stentor.language.parser",
    "polygon": "stentor.language.builder",
    "to_text": "stentor.language.printer",
    "weight": "stentor.language.builder",
}
#: Reached as attributes without an import of their own.
_MODULES = ("engine", "errors", "model")

__all__ = [
    "Changes",
    "Engine",
    "Event",
    "EventChanges",
    "Explanation",
    "Limits",
    "RecordLimits",
    "Redundant",
    "Rejection",
    "RejectionCount",
    "Report",
    "SafeRegion",
    "Schema",
    "StentorError",
    "Subscription",
    "WantedBy",
    "box",
    "col",
    "evaluate",
    "here",
    "mapped",
    "multipolygon",
    "parse",
    "polygon",
    "to_text",
    "weight",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("stentor")
        except PackageNotFoundError:  # run from its sources
            return "0+unknown"
    if name in _MODULES:
        return import_module(f"stentor.{name}")
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'stentor' has no attribute {name!r}") from None
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
