"""Settings of a structure as words of its name: `ap_tree paper`, `ap_tree fanout=500 layered`.

A name is all that a command line, a configuration file and a saved folder need in order to say
which index, with which settings, is meant.
"""

from __future__ import annotations

import difflib
from dataclasses import MISSING, Field, fields, replace
from functools import cache
from typing import Any, ClassVar, Protocol

from stentor.errors import SettingsError
from stentor.index.structure import Structure

_TRUE, _FALSE = "yes", "no"


class Settings(Protocol):
    """What a structure can be told: a frozen dataclass of numbers, words and yes or no."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


@cache
def variant(structure: type[Structure], words: tuple[str, ...]) -> type[Structure]:
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


def _settings_of(structure: type[Structure], words: tuple[str, ...]) -> tuple[Settings, list[str]]:
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
