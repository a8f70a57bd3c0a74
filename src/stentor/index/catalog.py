"""Index classes by name; settings are words of the name: `ap_tree fanout=500 layered`.

A structure is imported when it is first named. `auto` is the scan for a few subscriptions, and
packed for many; an engine goes from the one to the other by itself.
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import MISSING, Field, fields, replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol, cast

from stentor.encoding.columns import SubscriptionColumns, empty
from stentor.errors import SettingsError
from stentor.index.contract import Index
from stentor.index.layered import Layered, layered
from stentor.index.structure import Structure

_TRUE, _FALSE = "yes", "no"
#: The module and the class of each structure.
_STRUCTURES = {
    "scan": ("stentor.index.scan", "Scan"),
    "mo_tree": ("stentor.index.mo_tree", "MoTree"),
    "ap_tree": ("stentor.index.ap_tree", "ApTree"),
    "be_star_tree": ("stentor.index.be_star_tree", "BEStarTree"),
    "mics": ("stentor.index.mics", "Mics"),
    "packed": ("stentor.index.packed", "PackedIndex"),
}
#: What turns the name of a structure into that of its layered form.
_LAYERED = " layered"
AUTO = "auto"
SCAN = "scan"
PACKED = "packed"
#: Alternatives from which packed is faster than the scan.
_MANY = 20_000


def names() -> list[str]:
    """Every index there is, with its own settings: each structure, plain and layered.

    >>> names()[:2]
    ['scan', 'scan layered']
    """
    return [name + form for name in _STRUCTURES for form in ("", _LAYERED)]


def structures() -> dict[str, str]:
    """Every structure there is, and the package that holds it."""
    return {name: package for name, (package, _) in _STRUCTURES.items()}


def index_class(name: str, columns: SubscriptionColumns | None = None) -> type[Index]:
    """The class called *name*; for 'auto' what `choose` says of *columns*, where they are known.

    Words after the name of a structure are its settings (`with_settings`); the last may be
    `layered`.
    """
    if not isinstance(name, str):
        raise SettingsError(f"an index is a name like 'scan', got {type(name).__name__}")
    words = name.split()
    if words == [AUTO]:
        words = choose(empty(SubscriptionColumns) if columns is None else columns).split()
    is_layered = words[-1:] == [_LAYERED.strip()]
    structure = structure_class(" ".join(words[:-1] if is_layered else words))
    return layered(structure) if is_layered else structure


def structure_class(name: str) -> type[Structure]:
    """The class of the structure called *name*, with its settings."""
    base, *settings = name.split() or [""]
    if base not in _STRUCTURES:
        known = [AUTO, *names()]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SettingsError(f"no index {name!r}; {hint}there are {', '.join(known)}")
    module, class_name = _STRUCTURES[base]
    structure = getattr(importlib.import_module(module), class_name)
    return with_settings(structure, tuple(settings))


def structure_of(index: type[Index]) -> type[Structure]:
    """The structure that *index* is, or that it is a layered form of."""
    return index.structure if issubclass(index, Layered) else cast("type[Structure]", index)


class Choice(NamedTuple):
    """The name of the index that `auto` comes to, and the reason."""

    name: str
    reason: str


def choose(columns: SubscriptionColumns) -> str:
    """The name of the index that suits *columns*, by a size that was measured (docs/engine.md).

    >>> choose(empty(SubscriptionColumns))
    'scan'
    """
    return choice(columns).name


def choice(columns: SubscriptionColumns) -> Choice:
    """What `choose` says of *columns*, and why.

    >>> choice(empty(SubscriptionColumns)).reason
    '0 alternatives are fewer than 20,000'
    """
    alternatives = len(columns.predicate_start) - 1
    if alternatives < _MANY:
        return Choice("scan", f"{alternatives:,} alternatives are fewer than {_MANY:,}")
    return Choice(PACKED, f"{alternatives:,} alternatives are at least {_MANY:,}")


def reconsidered_from(chosen_for: int) -> int:
    """From how many subscriptions on `auto`, having *chosen_for* so many, may choose anew."""
    return max(_MANY, 2 * chosen_for)


def is_for_few(index: Index) -> bool:
    """Whether `auto` takes the structure of *index* for a few subscriptions only."""
    return structure_of(type(index)).name == SCAN


class StructureSettings(Protocol):
    """The settings of a structure: a frozen dataclass of numbers, words and yes or no."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


@cache
def with_settings(structure: type[Structure], words: tuple[str, ...]) -> type[Structure]:
    """The class of *structure* with the settings that *words* name: a preset, or `field=value`.

    Its name has the words in one order, and leaves out what is as in the preset.
    """
    if not words:
        return structure
    settings, shown = _settings_of(structure, words)
    own = {
        "name": " ".join([structure.name, *shown]),
        "settings": settings,
        "__module__": structure.__module__,
    }
    return type(structure.__name__, (structure,), own)


def _settings_of(
    structure: type[Structure], words: tuple[str, ...]
) -> tuple[StructureSettings, list[str]]:
    """What *words* set, and the words that are needed to say so."""
    presets = structure.presets
    named = [word for word in words if "=" not in word]
    for word in named:
        if word not in presets:
            raise SettingsError(_unknown(structure, word, "preset or setting", [*presets]))
    if len(named) > 1:
        raise SettingsError(f"{structure.name}: {' and '.join(named)} are two presets; name one")
    start = presets[named[0]] if named else structure.settings
    given = dict(word.split("=", 1) for word in words if "=" in word)
    values = {name: _value(structure, name, text) for name, text in given.items()}
    settings: Any = start
    if values:
        settings = replace(settings, **values)
    changed = [
        f"{field.name}={_text(getattr(settings, field.name))}"
        for field in _fields(structure)
        if getattr(settings, field.name) != getattr(start, field.name)
    ]
    return settings, [*named, *changed]


def _value(structure: type[Structure], name: str, text: str) -> Any:
    """The value of the setting *name* that is written as *text*."""
    kinds: dict[str, type[Any]] = {field.name: type(field.default) for field in _fields(structure)}
    if name not in kinds:
        raise SettingsError(_unknown(structure, name, "setting", []))
    kind = kinds[name]
    if kind is bool:
        if text in (_TRUE, _FALSE):
            return text == _TRUE
        raise SettingsError(f"{structure.name}: {name}={text}; expected yes or no")
    try:
        return kind(text)
    except ValueError:
        expected = {int: "a whole number", float: "a number"}[kind]
        raise SettingsError(f"{structure.name}: {name}={text}; expected {expected}") from None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    return str(value)


def _fields(structure: type[Structure]) -> tuple[Field[Any], ...]:
    settings: Any = structure.settings
    if settings is None:
        return ()
    found = fields(settings)
    assert all(field.default is not MISSING for field in found), "every setting has a default"
    return found


def _unknown(structure: type[Structure], word: str, what: str, known: list[str]) -> str:
    choices = known + [f"{field.name}=" for field in _fields(structure)]
    near = difflib.get_close_matches(word, choices, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    there = f"there are {', '.join(choices)}" if choices else "it has none"
    return f"{structure.name} has no {what} {word!r}; {hint}{there}"
