"""LIKE on UTF-8 bytes, in time linear in the text and the pattern."""

from __future__ import annotations

from stentor._jit import inner_kernel
from stentor.encoding.columns import UInt8

_ANY_TEXT = ord("%")

_ANY_CHARACTER = ord("_")

_ESCAPE = ord("\\")


@inner_kernel
def is_like(text: UInt8, pattern: UInt8) -> bool:
    """Whether the whole of *text* is of the LIKE form *pattern*.

    The first and the last part have a fixed position. Each part between two `%` is searched behind
    the one before, and the first match is taken: a later one would leave less for the rest.

    Cost: O(text + pattern); for a part with a `_` or an escape, O(text × part).
    """
    at, length, at_text = 0, len(pattern), 0
    while at < length and pattern[at] != _ANY_TEXT:
        is_any = pattern[at] == _ANY_CHARACTER
        at += pattern[at] == _ESCAPE
        if at == length:
            break  # an escape with nothing behind it matches nothing
        if at_text == len(text) or not (is_any or pattern[at] == text[at_text]):
            return False
        at_text = next_character(text, at_text) if is_any else at_text + 1
        at += 1
    if at == length:
        return at_text == len(text)
    first, last, characters = at + 1, at, 0
    while at < length:
        if pattern[at] == _ANY_TEXT:
            last, characters = at, 0
        else:
            if pattern[at] == _ESCAPE:
                if at == length - 1:
                    length -= 1
                    break
                at += 1
            characters += pattern[at] & 0xC0 != 0x80
        at += 1
    stop = len(text)
    while characters > 0 and stop > at_text:
        stop -= 1
        characters -= text[stop] & 0xC0 != 0x80
    if characters > 0 or part_end(text, stop, len(text), pattern, last + 1, length) != len(text):
        return False
    while first <= last:
        part = first
        while pattern[part] != _ANY_TEXT:
            part += 2 if pattern[part] == _ESCAPE else 1
        if first < part:
            at_text = find_part(text, at_text, stop, pattern, first, part)
            if at_text < 0:
                return False
        first = part + 1
    return True


@inner_kernel
def part_end(
    text: UInt8, at_text: int, stop_text: int, pattern: UInt8, start: int, stop: int
) -> int:
    """Where the part *start* … *stop* of *pattern*, which has no `%`, ends if it begins here.

    −1 where it is not at *at_text*, or goes beyond *stop_text*.
    """
    while start < stop:
        if at_text >= stop_text:
            return -1
        if pattern[start] == _ANY_CHARACTER:
            at_text = next_character(text, at_text)
        else:
            start += pattern[start] == _ESCAPE
            if pattern[start] != text[at_text]:
                return -1
            at_text += 1
        start += 1
    return at_text


@inner_kernel
def find_part(
    text: UInt8, at_text: int, stop_text: int, pattern: UInt8, start: int, stop: int
) -> int:
    """Where the first part *start* … *stop* in text[at_text:stop_text] ends; −1 without one."""
    plain = True
    for position in range(start, stop):
        plain = plain and pattern[position] != _ANY_CHARACTER and pattern[position] != _ESCAPE
    if plain:
        return find_bytes(text, at_text, stop_text, pattern, start, stop)
    while at_text < stop_text:
        end = part_end(text, at_text, stop_text, pattern, start, stop)
        if end >= 0:
            return end
        at_text = next_character(text, at_text)
    return -1


@inner_kernel
def find_bytes(
    text: UInt8, at_text: int, stop_text: int, sought: UInt8, start: int, stop: int
) -> int:
    """Where the first sought[start:stop] in text[at_text:stop_text] ends; −1 without one.

    By plain comparison, as long as it compares a few bytes at each position; then in linear time.
    """
    length, work, begun = stop - start, 0, at_text
    while at_text + length <= stop_text:
        same = 0
        while same < length and text[at_text + same] == sought[start + same]:
            same += 1
        if same == length:
            return at_text + length
        work += same
        at_text += 1
        if work > 64 + 4 * (at_text - begun):
            return find_two_way(text, at_text, stop_text, sought, start, stop)
    return -1


@inner_kernel
def find_two_way(
    text: UInt8, at_text: int, stop_text: int, sought: UInt8, start: int, stop: int
) -> int:
    """The same in linear time and without memory, whatever the bytes are.

    Crochemore and Perrin, "Two-way string-matching", JACM 38 (1991): the string is cut where its
    right half cannot overlap itself by less than a period. The right half is compared forwards; a
    mismatch there moves on by as much as was compared. Then the left half is compared backwards.
    """
    length = stop - start
    ahead, period = maximal_suffix(sought, start, stop, False)
    behind, other_period = maximal_suffix(sought, start, stop, True)
    cut = ahead
    if behind > ahead:
        cut, period = behind, other_period
    is_periodic = True
    for position in range(cut + 1):
        if sought[start + position] != sought[start + position + period]:
            is_periodic = False
            break
    if not is_periodic:
        period = max(cut + 1, length - cut - 1) + 1
    known = -1  # up to here the left half agrees from the position before, in a periodic string
    while at_text + length <= stop_text:
        position = max(cut, known) + 1
        while position < length and sought[start + position] == text[at_text + position]:
            position += 1
        if position < length:
            at_text += position - cut
            known = -1
            continue
        position = cut
        while position > known and sought[start + position] == text[at_text + position]:
            position -= 1
        if position <= known:
            return at_text + length
        at_text += period
        known = length - period - 1 if is_periodic else -1
    return -1


@inner_kernel
def maximal_suffix(sought: UInt8, start: int, stop: int, reverse: bool) -> tuple[int, int]:
    """The position before the greatest suffix (the least, where *reverse*); its period."""
    before, at, same, period = -1, 0, 1, 1
    while start + at + same < stop:
        mine, theirs = sought[start + at + same], sought[start + before + same]
        if mine == theirs:
            if same == period:
                at += period
                same = 1
            else:
                same += 1
        elif (mine < theirs) != reverse:
            at += same
            same = 1
            period = at - before
        else:
            before = at
            at += 1
            same = 1
            period = 1
    return before, period


@inner_kernel
def next_character(text: UInt8, position: int) -> int:
    """Where the character after the one at *position* starts."""
    position += 1
    while position < len(text) and text[position] & 0xC0 == 0x80:
        position += 1
    return position


@inner_kernel
def is_accepted(text: UInt8, table: UInt8) -> bool:
    """Whether the automaton *table* (`language/regular`) accepts *text*; one look-up for a byte."""
    states = int(table[0]) + 256 * int(table[1])
    classes = int(table[2]) + 256 * int(table[3])
    rows = 260 + states
    state = 2
    for byte in text:
        cell = rows + 2 * (state * classes + int(table[4 + int(byte)]))
        state = int(table[cell]) + 256 * int(table[cell + 1])
        if state < 2:
            break
    return bool(table[260 + state] != 0)
