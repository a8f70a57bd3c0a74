"""has_all, has_any, has_phrase: words that a text has, whatever their capitals; groups of terms."""

from __future__ import annotations

from stentor.errors import LimitError
from stentor.language import syntax_errors
from stentor.language.cursor import Cursor
from stentor.language.literals import quote
from stentor.language.normal_predicates import Keywords, Phrase
from stentor.language.predicates.calls import take
from stentor.language.terms import fold_terms, has_term, has_wildcard
from stentor.model.expression import Has, HasPhrase
from stentor.model.kind import Kind


def read(cursor: Cursor, name: str) -> Has:
    """`has_all(attribute, 'word', …)` or `has_any(…)`, from behind the parenthesis on."""
    attribute = cursor.attribute()
    words: list[str] = []
    while not words or cursor.tokens[cursor.at] != ")":
        take(cursor, ",", name)
        if len(words) == cursor.limits.words:
            error = LimitError(f"more than {len(words):,} words, which is the limit")
            raise cursor.with_position(error, cursor.at)
        at = cursor.at
        words.append(cursor.string("a word"))
        if not has_term(words[-1]):
            raise cursor.with_position(syntax_errors.no_term(words[-1]), at)
        if has_wildcard(words[-1]) and not cursor.limits.are_of_our_own:
            raise cursor.with_position(syntax_errors.part_of_a_word(words[-1]), at)
    cursor.at += 1
    return Has(attribute, tuple(words), every=name == "has_all")


def read_phrase(cursor: Cursor, name: str) -> HasPhrase:
    """`has_phrase(attribute, 'several words')`, from behind the parenthesis on."""
    attribute = cursor.attribute()
    take(cursor, ",", name)
    at = cursor.at
    phrase = cursor.string("a phrase")
    terms = fold_terms(phrase)
    if not terms:
        raise cursor.with_position(syntax_errors.no_term(phrase), at)
    if len(terms) > cursor.limits.words:
        error = LimitError(
            f"the phrase has {len(terms):,} words; the limit is {cursor.limits.words:,}"
        )
        raise cursor.with_position(error, at)
    take(cursor, ")", name)
    return HasPhrase(attribute, phrase)


def phrase_text(predicate: HasPhrase, name: str) -> str:
    """The text of has_phrase."""
    return f"has_phrase({name}, {quote(predicate.phrase)})"


def phrase_form(predicate: HasPhrase, negated: bool) -> Phrase | Keywords:
    """The normal form of *predicate*, or of its negation; a single term is a keyword."""
    terms = tuple(fold_terms(predicate.phrase))
    if not terms:
        raise syntax_errors.no_term(predicate.phrase)
    return Phrase(terms, negated) if len(terms) > 1 else Keywords((terms,), negated)


def has_run(terms: list[str], wanted: list[str]) -> bool:
    """Whether *wanted* stand in *terms*, one right after another.

    >>> has_run(["in", "new", "york"], ["new", "york"])
    True
    """
    size = len(wanted)
    return any(terms[at : at + size] == wanted for at in range(len(terms) - size + 1))


def to_text(predicate: Has, name: str) -> str:
    """The text, of the attribute written as *name*."""
    function = "has_all" if predicate.every else "has_any"
    return f"{function}({name}, {', '.join(map(quote, predicate.words))})"


def attribute_kind(predicate: Has) -> Kind:
    """Strings have words."""
    return Kind.STRING


def normal_form(predicate: Has, negated: bool) -> Keywords:
    """The normal form of *predicate*, or of its negation."""
    words = predicate.words
    folded = [tuple(dict.fromkeys(fold_terms(word))) for word in words]
    for word, terms in zip(words, folded, strict=True):
        if not terms:
            raise syntax_errors.no_term(word)
    groups = [{term for terms in folded for term in terms}] if predicate.every else map(set, folded)
    return Keywords(tuple(sorted({tuple(sorted(group)) for group in groups})), negated)
