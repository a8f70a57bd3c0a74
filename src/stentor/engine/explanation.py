"""Why a subscription wants an event, or why not: predicate by predicate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from stentor.language.evaluate import (
    alternative_score,
    alternative_truth,
    alternatives,
)
from stentor.language.negation import Literal, Positive, to_negation_normal_form
from stentor.language.printer import to_text
from stentor.language.simplify import simplify
from stentor.model import (
    Constant,
    Event,
    Expression,
    Kind,
    Not,
    OneOf,
    Point,
    Predicate,
    Range,
    Schema,
    Set,
    Value,
    Weighted,
)
from stentor.model.record import RECORD_FIELDS
from stentor.model.values.time import format_timestamp

_MARKS = {True: "✓", False: "✗", None: "?"}
#: More alternatives than a person reads; those that got furthest are shown.
MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """One predicate, whether it holds (None: unknown), and what the event has."""

    predicate: str
    truth: bool | None
    found: str


@dataclass(frozen=True, slots=True)
class AlternativeFindings:
    """One alternative: it holds where all of its predicates do."""

    truth: bool | None
    score: float
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a subscription wants an event, and why; prints as a small table."""

    subscription: str
    event: str
    matches: bool
    score: float
    note: str
    alternatives: tuple[AlternativeFindings, ...]
    homes: tuple[str, ...] = ()  # where in the index each of its alternatives lies

    def __bool__(self) -> bool:
        return self.matches

    def __str__(self) -> str:
        lines = [self._headline()]
        width = max((len(f.predicate) for a in self.alternatives for f in a.findings), default=0)
        for number, alternative in enumerate(self.alternatives):
            if number:
                lines.append("  or")
            lines += [
                f"  {_MARKS[f.truth]} {f.predicate:<{width}}  {f.found}".rstrip()
                for f in alternative.findings
            ]
        if self.homes:
            lines.append(f"  in {', '.join(dict.fromkeys(self.homes))}")
        return "\n".join(lines)

    def _headline(self) -> str:
        if self.matches:
            return f"{self.subscription} wants {self.event}, score {self.score:g}"
        return f"{self.subscription} does not want {self.event}: {self.note}"

    def _repr_html_(self) -> str:
        rows = "<tr><td colspan=3><i>or</i></td></tr>".join(
            "".join(
                f"<tr><td>{_MARKS[f.truth]}</td><td><code>{escape(f.predicate)}</code></td>"
                f"<td>{escape(f.found)}</td></tr>"
                for f in alternative.findings
            )
            for alternative in self.alternatives
        )
        return f"<p>{escape(self._headline())}</p><table>{rows}</table>"


def explain(
    id: str,
    expression: Expression,
    event: Event,
    schema: Schema,
    here: Point | None,
    homes: tuple[str, ...] = (),
) -> Explanation:
    """Why *expression*, the subscription *id* of somebody at *here*, wants *event* or not.

    *homes* is what the index says of where it lies.
    """
    found = []
    positive = to_negation_normal_form(expression)
    for alternative in alternatives(positive):
        truth = alternative_truth(alternative, event, here, schema.plane)
        score = alternative_score(alternative, event) if truth else 0.0
        findings = tuple(_finding(literal, event, here, schema) for literal in alternative)
        found.append(AlternativeFindings(truth, score, findings))
    matching = [one for one in found if one.truth]
    best = max(matching, key=lambda one: one.score, default=None)
    shown: tuple[AlternativeFindings, ...]
    if best is not None:
        shown, note = (best,), ""
    else:
        nearest = sorted(found, key=lambda one: sum(f.truth is not True for f in one.findings))
        shown, note = tuple(nearest[:MOST_SHOWN]), _note(positive, nearest)
    score = best.score if best else 0.0
    return Explanation(id, event.id, best is not None, score, note, shown, homes)


def _note(positive: Positive, nearest: list[AlternativeFindings]) -> str:
    if all(simplify(alternative, {}) is None for alternative in alternatives(positive)):
        return "no event at all can match this expression"
    failed = [finding for finding in nearest[0].findings if finding.truth is not True]
    if not failed:
        return "no one of its values satisfies all that is asked of its attribute"
    return f"{failed[0].predicate} {'is not known' if failed[0].truth is None else 'is false'}"


def _finding(literal: Literal, event: Event, here: Point | None, schema: Schema) -> Finding:
    attribute = literal.predicate.attribute
    leaf: Predicate | Weighted = literal.predicate
    if literal.weight != 1.0:
        leaf = Weighted(literal.predicate, literal.weight)
    truth = alternative_truth((literal,), event, here, schema.plane)
    value = event.attributes.get(attribute)
    return Finding(
        to_text(Not(leaf) if literal.negated else leaf),
        truth,
        _missing(attribute) if value is None else f"{attribute} = {show(value)}",
    )


def _missing(attribute: str) -> str:
    """What is said of an attribute that the event does not have.

    Engines of earlier versions, and folders that they saved, hold questions about fields.
    """
    if attribute in RECORD_FIELDS:
        return f"{attribute} is a field of every record, not an attribute"
    return f"{attribute} is missing"


def show(value: Value) -> str:
    """*value* as a person writes it."""
    match value:
        case Point(x, y):
            return f"[{x:g}, {y:g}]"
        case Range(kind, low, high):
            ends = ("" if math.isinf(end) else show(Constant(kind, end)) for end in (low, high))
            return " … ".join(ends).strip()
        case OneOf():
            shown = ", ".join(map(show, value.members))
            return f"one of {shown if len(shown) <= 60 else shown[:60] + '…'}"
        case Set():
            shown = ", ".join(map(show, value.members))
            return f"{{{shown if len(shown) <= 60 else shown[:60] + '…'}}}"
        case Constant(Kind.TIMESTAMP, micros):
            return format_timestamp(float(micros))
        case Constant(Kind.BOOLEAN, flag):
            return "true" if flag else "false"
        case Constant(_, str(text)):
            return repr(text if len(text) <= 60 else text[:60] + "…")
        case Constant(_, number):
            return f"{number:g}"
