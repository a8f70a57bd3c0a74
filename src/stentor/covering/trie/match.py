"""The walk through the trie: cov_k for a row of columns."""

from __future__ import annotations

from stentor._jit import inner_kernel, kernel_inline
from stentor.covering.graph.edges import GONE, Edges, is_below
from stentor.covering.implies.decode import row_covers
from stentor.covering.implies.operands import COVERED, NOT_COVERED, UNDECIDED
from stentor.covering.kd_tree.match import begin_matching, next_hits
from stentor.covering.trie.layout import (
    NO_CHILD,
    NO_TREE,
    QUESTION_ROW,
    QUESTIONS,
    ROOT,
    TrieArrays,
    child_of,
)
from stentor.covering.trie.points import write_point
from stentor.covering.trie.tokens import BRANCHING, IMPOSSIBLE, keep_common, offered_tokens
from stentor.encoding.columns import Int64

#: Instead of a count: the definition must decide the open questions first.
NEEDS_DEFINITION = -1


@inner_kernel
def trie_coverers(
    index: TrieArrays, edges: Edges, plane: bool, k: int, row: int, found: Int64
) -> int:
    """Up to *k* current rows that cover *row*, into *found*; how many, or NEEDS_DEFINITION."""
    questions = index.questions
    if questions.state[QUESTION_ROW] != row:
        questions.state[QUESTION_ROW] = row
        questions.state[QUESTIONS] = 0
    alternative = first_possible(index, row)
    if alternative < 0:
        return coverers_of_nothing(index, edges, k, row, found)
    walk = index.walk
    offers = offered_tokens(index.columns, index.kinds, index.extras, alternative, walk.offered)
    # A coverer with one alternative covers all of ours with it: it wants what all of them offer.
    last = index.columns.alternative_start[row + 1]
    count = 0
    branch = child_of(index.trie, ROOT, BRANCHING)
    if branch != NO_CHILD:
        count = match_trie(
            index, edges, plane, k, row, branch, alternative, alternative + 1, offers, found, count
        )
    for other in range(alternative + 1, last):
        if index.states[other] != IMPOSSIBLE:
            others = offered_tokens(index.columns, index.kinds, index.extras, other, walk.wanted)
            offers = keep_common(walk.offered, offers, walk.wanted, others)
    if count != k and count != NEEDS_DEFINITION:
        count = match_trie(
            index, edges, plane, k, row, ROOT, alternative, last, offers, found, count
        )
    if count < k and count != NEEDS_DEFINITION and has_open_questions(index):
        return NEEDS_DEFINITION
    return count


@inner_kernel
def match_trie(
    index: TrieArrays,
    edges: Edges,
    plane: bool,
    k: int,
    row: int,
    start: int,
    first: int,
    last: int,
    offers: int,
    found: Int64,
    count: int,
) -> int:
    """Add coverers from all nodes below *start* whose path is among the first *offers* of the walk.

    They cover the alternatives *first* … *last* as far as tokens and points can decide.
    """
    walk = index.walk
    depth = 0
    walk.node[0], walk.following[0], walk.dims[0] = start, 0, 0
    arrived = True
    while depth >= 0:
        node = walk.node[depth]
        if arrived:
            walk.state[0] += 1
            if index.trie.tree[node] != NO_TREE:
                count = try_group(index, edges, plane, k, row, node, found, count)
                if count in (k, NEEDS_DEFINITION):
                    return count
            arrived = False
        position = walk.following[depth]
        if position == offers:
            depth -= 1
            continue
        walk.following[depth] = position + 1
        child = child_of(index.trie, node, walk.offered.token[position])
        if child != NO_CHILD and index.trie.below[child] > 0:
            dims = write_query(index, plane, first, last, position, walk.dims[depth])
            depth += 1
            walk.node[depth], walk.following[depth], walk.dims[depth] = child, position + 1, dims
            arrived = True
    return count


@inner_kernel
def write_query(
    index: TrieArrays, plane: bool, first: int, last: int, position: int, at: int
) -> int:
    """Write the dimensions of the offer *position*, the largest of all alternatives; their end."""
    walk, columns = index.walk, index.columns
    predicate = walk.offered.predicate[position]
    stop = write_point(columns, index.kinds, plane, first, predicate, True, walk.point, at)
    if stop == at:
        return at
    for alternative in range(first + 1, last):
        if index.states[alternative] == IMPOSSIBLE:
            continue
        for other in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            if columns.attribute[other] == walk.offered.attribute[position]:
                write_point(columns, index.kinds, plane, alternative, other, True, walk.other, 0)
                for dim in range(stop - at):
                    walk.point[at + dim] = max(walk.point[at + dim], walk.other[dim])
                break
    return stop


@kernel_inline
def first_possible(index: TrieArrays, row: int) -> int:
    """The first alternative of *row* that can hold; −1 where none can."""
    start, stop = index.columns.alternative_start[row], index.columns.alternative_start[row + 1]
    for alternative in range(start, stop):
        if index.states[alternative] != IMPOSSIBLE:
            return alternative
    return -1


@inner_kernel
def coverers_of_nothing(index: TrieArrays, edges: Edges, k: int, row: int, found: Int64) -> int:
    """Up to *k* rows for *row*, which no event can match: anything but a younger such row."""
    count = 0
    for other in range(len(index.columns.alternative_start) - 1):
        if other == row or edges.state[other] == GONE:
            continue
        if other < row or first_possible(index, other) >= 0:
            found[count] = other
            count += 1
            if count == k:
                break
    return count


@inner_kernel
def try_group(
    index: TrieArrays,
    edges: Edges,
    plane: bool,
    k: int,
    row: int,
    node: int,
    found: Int64,
    count: int,
) -> int:
    """Add the coverers among the entries at *node*; the new count, or NEEDS_DEFINITION."""
    begin_matching(index.matching, index.trie.tree[node])
    dims = index.trie.dims[node]
    while True:
        hits = next_hits(index.forest, dims, index.walk.point, index.matching)
        if hits == 0:
            return count
        for position in range(hits):
            other = index.row_of[index.matching.hits[position]]
            if other == row or is_among(found, count, other):
                continue
            verdict = may_cover(index, plane, other, row)
            if verdict == COVERED and (
                edges.covered[row] == 0 or not is_below(edges, k, other, row)
            ):
                found[count] = other
                count += 1
                if count == k:
                    return count
            elif verdict == NEEDS_DEFINITION:
                return NEEDS_DEFINITION


@kernel_inline
def is_among(found: Int64, count: int, row: int) -> bool:
    """Whether *row* is one of the first *count* of *found*."""
    for position in range(count):
        if found[position] == row:
            return True
    return False


@inner_kernel
def may_cover(index: TrieArrays, plane: bool, other: int, row: int) -> int:
    """Whether *other* covers *row* and is not a younger equal one: COVERED, or NOT_COVERED (yet).

    What ends earlier covers for a while only: NOT_COVERED. (Where ends are announced as
    unsubscriptions, rows have none.) NEEDS_DEFINITION where one more question does not fit.
    """
    if index.columns.until[other] < index.columns.until[row]:
        return NOT_COVERED
    verdict = row_covers(index.columns, index.kinds, plane, index.states, other, row)
    if verdict == UNDECIDED:
        verdict = answer_to(index, other)
    if verdict != COVERED or other < row:
        return verdict
    back = row_covers(index.columns, index.kinds, plane, index.states, row, other)
    if back == UNDECIDED:
        back = answer_to(index, ~other)
    if back == NEEDS_DEFINITION:
        return NEEDS_DEFINITION
    return COVERED if back == NOT_COVERED else NOT_COVERED


@inner_kernel
def answer_to(index: TrieArrays, question: int) -> int:
    """The answer to *question*; UNDECIDED while it is open, NEEDS_DEFINITION if it does not fit."""
    questions = index.questions
    count = questions.state[QUESTIONS]
    for position in range(count):
        if questions.question[position] == question:
            return int(questions.answer[position])
    if count == len(questions.question):
        return NEEDS_DEFINITION
    questions.question[count] = question
    questions.answer[count] = UNDECIDED
    questions.state[QUESTIONS] += 1
    return UNDECIDED


@kernel_inline
def has_open_questions(index: TrieArrays) -> bool:
    """Whether a question about the row is still open."""
    for position in range(index.questions.state[QUESTIONS]):
        if index.questions.answer[position] == UNDECIDED:
            return True
    return False
