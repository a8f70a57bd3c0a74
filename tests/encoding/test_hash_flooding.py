"""Words that were made up to meet in one slot of a hash table cost no more than others.

What is counted are probes: how far from where its look-up starts each entry of a table stands.
"""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from stentor import Engine, Schema
from stentor._jit import kernel
from stentor.covering.trie.layout import NO_CHILD, ROOT, grow_trie, new_trie, node_for
from stentor.encoding.columns import read_only_columns
from stentor.encoding.events import TimedEvent, encode_events
from stentor.encoding.hashing import attribute_seed, hash_slices
from stentor.encoding.spread import first_slot, slot_of_bytes, spread_over
from stentor.index.ap_tree.keywords import KeywordTable, rank_of, rank_or_new
from stentor.index.ap_tree.layout import COUNTERS, NONE, Vocabulary
from stentor.index.verify.scratch import load_event, scratch_for
from stentor.model import Constant, Event, Kind
from stentor.wire.tables import read_event_table

TEXT = Schema.declare({"text": "string"})
#: Linear probing in a table that is at most half full takes 1.5 probes; chance may take some more.
FEW = 2.0


def crafted_words(count, bits):
    """*count* words of the attribute `text` whose hashes end in the same *bits*."""
    tried = [f"w{number:07d}" for number in range(2 * count << bits)]
    data = np.frombuffer("".join(tried).encode(), np.uint8)
    hashes = np.empty(len(tried), np.uint64)
    start = np.arange(len(tried) + 1) * len(tried[0])
    hash_slices(data, start, np.uint64(attribute_seed("text")), hashes)
    meeting = np.flatnonzero(hashes & np.uint64((1 << bits) - 1) == 0)[:count]
    assert len(meeting) == count
    return [tried[place] for place in meeting.tolist()]


def crafted_hashes(count):
    """Hashes that fixed rules send to one slot, or that lie in even steps."""
    numbers = np.arange(1, count + 1, dtype=np.uint64)
    for shift in (0, 20, 32, 44, 51):
        yield numbers << np.uint64(shift)
    yield numbers << np.uint64(32) | numbers  # folding one half into the other gives 0
    yield numbers << np.uint64(44) ^ numbers << np.uint64(12)


@kernel
def spread_out(events, event, scratch):
    load_event(events, event, scratch)


@kernel
def starts_of(spread, hashes, out):
    for place in range(len(hashes)):
        out[place] = first_slot(spread, hashes[place])


@kernel
def start_of_bytes(spread, data):
    return slot_of_bytes(spread, data)


def probes(spread, slots, hashes, size):
    """How many slots are looked at on the way to each of *slots*, on average."""
    starts = np.empty(len(hashes), np.int64)
    starts_of(spread, np.ascontiguousarray(hashes), starts)
    return (1 + (slots - starts) % size).mean()


def scattered(events):
    scratch = scratch_for(events)
    spread_out(events, 0, scratch)
    return scratch, np.flatnonzero(scratch.term_mark == scratch.stamp[0])


def event_of(words):
    event = Event("e", {"text": Constant(Kind.STRING, " ".join(words))})
    return encode_events([TimedEvent(event)], TEXT)


def test_words_of_an_event_that_were_made_to_meet_do_not():
    events = event_of(crafted_words(100, bits=10))
    scratch, slots = scattered(events)
    assert len(scratch.term_mark) == 1 << 10
    assert len(slots) == 100
    assert probes(scratch.spread, slots, scratch.term_hash[slots], 1 << 10) < FEW


def test_hashes_of_an_event_that_were_made_to_meet_do_not():
    events = event_of(f"w{number}" for number in range(5_000))
    for hashes in crafted_hashes(5_000):
        crafted = read_only_columns(events._replace(term_hash=hashes))
        scratch, slots = scattered(crafted)
        assert len(slots) == 5_000
        size = len(scratch.term_mark)
        assert probes(scratch.spread, slots, scratch.term_hash[slots], size) < FEW


def test_words_that_all_have_one_hash_are_told_apart_by_their_bytes():
    events = event_of(f"w{number}" for number in range(5_000))
    same = read_only_columns(events._replace(term_hash=np.full(5_000, 7, np.uint64)))
    scratch, slots = scattered(same)
    assert len(slots) == 5_000
    texts = [
        bytes(scratch.term_bytes[scratch.term_start[slot] : scratch.term_stop[slot]])
        for slot in slots.tolist()
    ]
    assert sorted(texts) == sorted(f"w{number}".encode() for number in range(5_000))
    starts = np.array(
        [start_of_bytes(scratch.spread, np.frombuffer(text, np.uint8)) for text in texts]
    )
    away = (slots - starts) % len(scratch.term_mark)
    assert np.sort(away)[:-1].mean() < FEW  # all but the first, which stands where the hash says


def test_a_word_that_is_said_again_and_again_is_kept_once():
    table = pa.table({"id": ["e"], "text": ["so " * 5_000 + "good"]})
    events = read_event_table(table, TEXT, default_time=0).columns
    assert len(events.term_hash) == 5_001
    _, slots = scattered(events)
    assert len(slots) == 2


@pytest.mark.parametrize("index", ["scan", "ap_tree", "mo_tree", "be_star_tree", "mics"])
def test_what_was_made_to_meet_is_matched_as_everything_else(index):
    words = crafted_words(40, bits=8)
    engine = Engine(index, clock=None)
    for word in words[::2]:
        engine.subscribe(word, f"has_all(text, '{word}', 'again')")
    event = {"id": "e", "text": " ".join([*words, *["again"] * 50])}
    assert engine.publish(event) == sorted(words[::2])
    assert engine.publish_batch(pa.table({"id": ["f"], "text": [event["text"]]}))[0] == sorted(
        words[::2]
    )
    assert engine.publish({"id": "g", "text": " ".join(words)}) == []


@kernel
def learn_all(table, spread, rank, counter, hashes):
    for hashed in hashes:
        rank_or_new(table, spread, rank, counter, hashed)


@kernel
def ranks_of(vocabulary, hashes, out):
    for place in range(len(hashes)):
        out[place] = rank_of(vocabulary, hashes[place])


def test_keywords_of_the_ap_tree_that_were_made_to_meet_do_not():
    for hashes in crafted_hashes(3_000):
        keywords = KeywordTable(np.zeros(COUNTERS, np.int64))
        for part in np.split(hashes, 3):
            keywords.grow(len(part))
            learn_all(keywords.hashed, keywords.spread, keywords.rank, keywords.known, part)
        slots = np.flatnonzero(keywords.rank != NONE)
        assert len(slots) == 3_000
        assert probes(keywords.spread, slots, keywords.hashed[slots], len(keywords.rank)) < FEW
        found = np.empty(3_000, np.int64)
        ranks_of(keywords.view, hashes, found)
        assert found.tolist() == list(range(3_000))


def test_a_vocabulary_of_an_earlier_version_is_spread_anew():
    hashes = np.arange(1, 20, dtype=np.uint64) << np.uint64(32)
    table, rank = np.zeros(64, np.uint64), np.full(64, NONE, np.int32)
    for number, hashed in enumerate(hashes):  # as they were filed then
        slot = int(hashed ^ hashed >> np.uint64(32)) & 63
        while rank[slot] != NONE:
            slot = (slot + 1) & 63
        table[slot], rank[slot] = hashed, number
    old = Vocabulary(table, np.zeros(0, np.uint64), rank, np.zeros(0), np.zeros(0, np.uint8))
    keywords = KeywordTable.over(np.zeros(COUNTERS, np.int64), old)
    keywords.rehash(64)
    found = np.empty(len(hashes), np.int64)
    ranks_of(keywords.view, hashes, found)
    assert found.tolist() == list(range(len(hashes)))


@kernel
def enter_all(trie, tokens):
    for place in range(len(tokens)):
        node_for(trie, tokens[place : place + 1], 1)


def test_tokens_of_the_covering_index_that_were_made_to_meet_do_not():
    for tokens in crafted_hashes(3_000):
        trie = grow_trie(new_trie(), 4_000)
        enter_all(trie, tokens)
        slots = np.flatnonzero(trie.slot_node != NO_CHILD)
        assert (trie.slot_node[slots] == ROOT).all()
        assert len(slots) == 3_000
        assert probes(trie.spread, slots, trie.slot_token[slots], len(trie.slot_node)) < FEW


def test_every_process_spreads_in_its_own_way_and_compiles_none_of_it():
    code = "from stentor.encoding.spread import spread_over; print(spread_over(64).tolist())"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    ours = spread_over(64).tolist()
    shown = {str(ours), *(run.stdout.strip() for run in runs)}
    assert len(shown) == 3
    for first, second, base, shift in map(json.loads, shown):
        assert first % 2 == second % 2 == 1
        assert 256 <= base < 2**31
        assert shift == 64 - 6
