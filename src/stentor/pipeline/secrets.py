"""Secrets in options: named where options are written, looked up where they are used, never shown.

${NAME}         what the environment has under NAME
${file:PATH}    what the file holds, without the line's end
$${             a dollar and a brace, and no secret
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from stentor.errors import SettingsError

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FILE: Final = "file:"
#: What was looked up in this process: never to be shown.
_KNOWN: set[str] = set()
#: A shorter secret would be found in every second sentence.
_LEAST: Final = 4


def resolved(options: Mapping[str, str]) -> dict[str, str]:
    """*options* with their secrets; a SettingsError names one that is not there."""
    return {name: _resolved(text, name) for name, text in options.items()}


def beside(options: Mapping[str, str], folder: Path) -> dict[str, str]:
    """*options* whose secrets in files are beside *folder* where their paths are relative."""

    def absolute(found: re.Match[str]) -> str:
        inner = found[1]
        if inner is None or not inner.startswith(_FILE):
            return found[0]
        return f"${{{_FILE}{folder / inner.removeprefix(_FILE)}}}"

    return {name: _REFERENCE.sub(absolute, text) for name, text in options.items()}


def secret_mistakes(options: Mapping[str, str]) -> list[str]:
    """What is wrong with the secrets that *options* name, a sentence each."""
    mistakes = []
    for name, text in options.items():
        try:
            _resolved(text, name)
        except SettingsError as error:
            mistakes.append(str(error))
    return mistakes


def without_secrets(text: str) -> str:
    """*text* with … instead of every secret that was looked up."""
    for secret in sorted(_KNOWN, key=len, reverse=True):
        text = text.replace(secret, "…")
    return text


def _resolved(text: str, option: str) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] is None:
            return "${"
        secret = _looked_up(found[1], option)
        # Messages may hold a line of it alone.
        parts = (secret, secret.strip(), *map(str.strip, secret.splitlines()))
        _KNOWN.update(one for one in parts if len(one) >= _LEAST)
        return secret

    return _REFERENCE.sub(value, text)


def _looked_up(reference: str, option: str) -> str:
    if reference.startswith(_FILE):
        file = Path(reference.removeprefix(_FILE))
        try:
            return file.read_text("utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise SettingsError(f"{option}: cannot read {file}: {reason}") from None
    if not _NAME.fullmatch(reference):
        raise SettingsError(
            f"{option}: expected ${{NAME}} of the environment or ${{file:PATH}}, got "
            f"${{{reference}}}; write $${{ for a dollar and a brace"
        )
    secret = os.environ.get(reference)
    if secret is None:
        raise SettingsError(f"{option}: the environment has no {reference}; export it first")
    return secret
