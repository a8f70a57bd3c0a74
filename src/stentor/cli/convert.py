"""`stentor convert`: rules of other systems as subscriptions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from stentor._files import replaced
from stentor.cli.inputs import ANSWER_NO, JsonOption, RejectedFile
from stentor.cli.match import check_output, file_of
from stentor.cli.screen import summarise
from stentor.errors import SettingsError, StentorError
from stentor.wire.foreign import ForeignRule, converted, rules_of
from stentor.wire.foreign.percolator import FieldTypes, types_of
from stentor.wire.json_text import from_json, to_json
from stentor.wire.rejected import Rejected, raw_text


class SystemName(StrEnum):
    """The systems, as Typer takes choices: the keys of `SYSTEMS`."""

    percolator = "percolator"
    eventbridge = "eventbridge"


def command(
    rules: Annotated[
        Path, typer.Argument(help="A JSON document of rules, or one a line; `-` is stdin.")
    ],
    system: Annotated[SystemName, typer.Option("--from", help="Whose rules they are.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="JSON lines; standard output if not given."),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            help="The index's mapping, which says what is text, keyword, date (percolator)."
        ),
    ] = None,
    rejected: Annotated[
        Path, typer.Option(help="Where rules go that no expression says, with their reasons.")
    ] = Path("rejected.jsonl"),
    as_json: JsonOption = False,
) -> None:
    """Convert rules of other systems into subscriptions.

    A rule is converted exactly or refused with its reason; where any is, the exit code is 1.

        stentor convert --from eventbridge rules.json -o subscriptions.jsonl
    """
    check_output(out, [rules])
    check_output(rejected, [rules])
    types = types_of(from_json(_read(mapping))) if mapping is not None else {}
    count, path = 0, file_of(out)
    with RejectedFile(rejected) as rejects, ExitStack() as stack:
        output = sys.stdout
        if path is not None:
            partial = stack.enter_context(replaced(path))
            output = stack.enter_context(partial.open("w", encoding="utf-8"))
        for found in _subscriptions(rules, system.value, types):
            if isinstance(found, Rejected):
                rejects.add(rules, found)
            else:
                output.write(json.dumps(found, ensure_ascii=False) + "\n")
                count += 1
    counts: dict[str, Any] = {"converted": count, "rejected": rejects.count}
    if rejects.count:
        counts["rejected file"] = str(rejected)
    summarise(counts, as_json=as_json, to_output=path is not None)
    if rejects.count:
        raise typer.Exit(ANSWER_NO)


def _subscriptions(
    path: Path, system: str, types: FieldTypes
) -> Iterator[dict[str, str] | Rejected]:
    """What the rules of *path* come to, in their order."""
    for document, line in _documents(path):
        try:
            for rule in rules_of(document, system, line):
                yield _subscription(rule, system, types, line)
        except StentorError as error:
            yield Rejected(str(error), raw_text(to_json(document)), line)


def _subscription(
    rule: ForeignRule, system: str, types: FieldTypes, line: int
) -> dict[str, str] | Rejected:
    try:
        return {"id": rule.id, "expression": converted(rule.body, system, types)}
    except StentorError as error:
        return Rejected(f"{rule.id}: {error}", raw_text(to_json(rule.body)), line)


def _documents(path: Path) -> Iterator[tuple[Any, int]]:
    """The documents of *path*, each with its line: the whole file, or every line of it."""
    data = _read(path)
    try:
        whole = from_json(data)
    except StentorError:
        lines = [line.strip() for line in data.splitlines()]
        for number, line in enumerate(lines, 1):
            if line:
                try:
                    yield from_json(line), number
                except StentorError as error:
                    raise SettingsError(f"{path}:{number} is no JSON: {error}") from None
        return
    for number, one in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield one, number


def _read(path: Path) -> bytes:
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
