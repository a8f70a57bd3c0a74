"""The walk through the trie: cov_k for a row of columns."""

from __future__ import annotations

from stentor._jit import kernel_inline, kernel_part
from stentor.covering.dominance.tree_search import begin_search, next_hits
from stentor.covering.graph.edges import GONE, Edges, hangs_on
from stentor.covering.mixed.dims import write_dims
from stentor.covering.mixed.layout import ASKED_ROW, QUESTIONS, MixedIndex
from stentor.covering.mixed.rows import row_covers
from stentor.covering.mixed.tokens import BRANCHING, IMPOSSIBLE, keep_common, tokens_offered
from stentor.covering.mixed.trie import NO_CHILD, NO_TREE, ROOT, child_of
from stentor.covering.mixed.verdicts import ASK, NO, YES
from stentor.encoding.columns import Int64

#: In place of a count: the definition must be asked first.
MUST_ASK = -1


@kernel_part
def mixed_coverers(
    index: MixedIndex, edges: Edges, plane: bool, k: int, row: int, found: Int64
) -> int:
    """Up to *k* standing rows that cover *row*, into *found*; how many, or MUST_ASK."""
    asks = index.asks
    if asks.state[ASKED_ROW] != row:
        asks.state[ASKED_ROW] = row
        asks.state[QUESTIONS] = 0
    alternative = first_possible(index, row)
    if alternative < 0:
        return coverers_of_nothing(index, edges, k, row, found)
    walk = index.walk
    offers = tokens_offered(index.columns, index.kinds, index.extras, alternative, walk.offered)
    # Who has one alternative covers all of ours with it: it asks for what all of them offer.
    last = index.columns.alternative_start[row + 1]
    count = 0
    branch = child_of(index.trie, ROOT, BRANCHING)
    if branch != NO_CHILD:
        count = walk_from(
            index, edges, plane, k, row, branch, alternative, alternative + 1, offers, found, count
        )
    for other in range(alternative + 1, last):
        if index.states[other] != IMPOSSIBLE:
            others = tokens_offered(index.columns, index.kinds, index.extras, other, walk.asked)
            offers = keep_common(walk.offered, offers, walk.asked, others)
    if count != k and count != MUST_ASK:
        count = walk_from(
            index, edges, plane, k, row, ROOT, alternative, last, offers, found, count
        )
    if count < k and count != MUST_ASK and has_open_questions(index):
        return MUST_ASK
    return count


@kernel_part
def walk_from(
    index: MixedIndex,
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

    They cover the alternatives *first* … *last* as far as tokens and points tell.
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
                if count in (k, MUST_ASK):
                    return count
            arrived = False
        place = walk.following[depth]
        if place == offers:
            depth -= 1
            continue
        walk.following[depth] = place + 1
        child = child_of(index.trie, node, walk.offered.token[place])
        if child != NO_CHILD and index.trie.below[child] > 0:
            dims = write_query(index, plane, first, last, place, walk.dims[depth])
            depth += 1
            walk.node[depth], walk.following[depth], walk.dims[depth] = child, place + 1, dims
            arrived = True
    return count


@kernel_part
def write_query(index: MixedIndex, plane: bool, first: int, last: int, place: int, at: int) -> int:
    """Write the dimensions of the offer *place*, the largest of all alternatives; their end."""
    walk, columns = index.walk, index.columns
    predicate = walk.offered.predicate[place]
    stop = write_dims(columns, index.kinds, plane, first, predicate, True, walk.point, at)
    if stop == at:
        return at
    for alternative in range(first + 1, last):
        if index.states[alternative] == IMPOSSIBLE:
            continue
        for other in range(
            columns.predicate_start[alternative], columns.predicate_start[alternative + 1]
        ):
            if columns.attribute[other] == walk.offered.attribute[place]:
                write_dims(columns, index.kinds, plane, alternative, other, True, walk.other, 0)
                for dim in range(stop - at):
                    walk.point[at + dim] = max(walk.point[at + dim], walk.other[dim])
                break
    return stop


@kernel_inline
def first_possible(index: MixedIndex, row: int) -> int:
    """The first alternative of *row* that can hold; −1 where none can."""
    start, stop = index.columns.alternative_start[row], index.columns.alternative_start[row + 1]
    for alternative in range(start, stop):
        if index.states[alternative] != IMPOSSIBLE:
            return alternative
    return -1


@kernel_part
def coverers_of_nothing(index: MixedIndex, edges: Edges, k: int, row: int, found: Int64) -> int:
    """Up to *k* rows for *row*, which no event can match: anything but a younger such row."""
    count = 0
    for other in range(len(index.columns.alternative_start) - 1):
        if other == row or edges.standing[other] == GONE:
            continue
        if other < row or first_possible(index, other) >= 0:
            found[count] = other
            count += 1
            if count == k:
                break
    return count


@kernel_part
def try_group(
    index: MixedIndex,
    edges: Edges,
    plane: bool,
    k: int,
    row: int,
    node: int,
    found: Int64,
    count: int,
) -> int:
    """Add the coverers among the entries at *node*; the new count, or MUST_ASK."""
    begin_search(index.search, index.trie.tree[node])
    dims = index.trie.dims[node]
    while True:
        hits = next_hits(index.forest, dims, index.walk.point, index.search)
        if hits == 0:
            return count
        for place in range(hits):
            other = index.row_of[index.search.hits[place]]
            if other == row or is_among(found, count, other):
                continue
            verdict = may_cover(index, plane, other, row)
            if verdict == YES and (edges.covered[row] == 0 or not hangs_on(edges, k, other, row)):
                found[count] = other
                count += 1
                if count == k:
                    return count
            elif verdict == MUST_ASK:
                return MUST_ASK


@kernel_inline
def is_among(found: Int64, count: int, row: int) -> bool:
    """Whether *row* is one of the first *count* of *found*."""
    for place in range(count):
        if found[place] == row:
            return True
    return False


@kernel_part
def may_cover(index: MixedIndex, plane: bool, other: int, row: int) -> int:
    """Whether *other* covers *row* and is not a younger equal one: YES, NO (or not known yet).

    MUST_ASK only where there is no room for one more question.
    """
    verdict = row_covers(index.columns, index.kinds, plane, index.states, other, row)
    if verdict == ASK:
        verdict = answer_to(index, other)
    if verdict != YES or other < row:
        return verdict
    back = row_covers(index.columns, index.kinds, plane, index.states, row, other)
    if back == ASK:
        back = answer_to(index, ~other)
    if back == MUST_ASK:
        return MUST_ASK
    return YES if back == NO else NO


@kernel_part
def answer_to(index: MixedIndex, question: int) -> int:
    """The answer to *question*: YES or NO; ASK where it is open now, MUST_ASK without room."""
    asks = index.asks
    questions = asks.state[QUESTIONS]
    for place in range(questions):
        if asks.question[place] == question:
            return int(asks.answer[place])
    if questions == len(asks.question):
        return MUST_ASK
    asks.question[questions] = question
    asks.answer[questions] = ASK
    asks.state[QUESTIONS] += 1
    return ASK


@kernel_inline
def has_open_questions(index: MixedIndex) -> bool:
    """Whether a question about the row is still open."""
    for place in range(index.asks.state[QUESTIONS]):
        if index.asks.answer[place] == ASK:
            return True
    return False
