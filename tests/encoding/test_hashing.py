"""Hashes are the same everywhere, for ever: in Python, in kernels, in folders written long ago."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stentor.encoding.hashing import (
    BASIS,
    absorb,
    attribute_seed,
    finish,
    hash_bytes,
    hash_slice,
    hash_slices,
)

seeds = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(
    ("data", "published"),
    [
        (b"", 0xCBF29CE484222325),
        (b"a", 0xAF63DC4C8601EC8C),
        (b"foobar", 0x85944171F73967E8),
    ],
)
def test_absorbing_bytes_gives_the_published_values_of_fnv_1a(data: bytes, published: int) -> None:
    value = np.uint64(BASIS)
    for byte in data:
        value = np.uint64(absorb(value, np.uint8(byte)))
    assert int(value) == published


@pytest.mark.parametrize(("value", "mixed"), [(0, 0), (1, 0xB456BCFC34C2CB2C)])
def test_finishing_gives_the_published_values_of_murmur_3(value: int, mixed: int) -> None:
    assert int(finish(np.uint64(value))) == mixed


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0xEFD01F60BA992926),
        (b"ipad", 0xCC54BD5F6765FDCB),
        ("東京".encode(), 0xB700C569E52D4522),
        (bytes(range(256)), 0x2067DB6DBD4EFA06),
    ],
)
def test_hashes_never_change(data: bytes, expected: int) -> None:
    assert hash_bytes(data) == expected


@given(st.binary(max_size=40), seeds)
def test_the_kernel_equals_the_definition(data: bytes, seed: int) -> None:
    padded = np.frombuffer(b"<" + data + b">", np.uint8)
    assert int(hash_slice(padded, 1, 1 + len(data), np.uint64(seed))) == hash_bytes(data, seed)


@given(st.lists(st.binary(max_size=8), max_size=8), seeds)
def test_many_slices_are_hashed_as_each_is(pieces: list[bytes], seed: int) -> None:
    data = np.frombuffer(b"".join(pieces), np.uint8)
    offsets = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    out = np.zeros(len(pieces), np.uint64)
    assert hash_slices(data, offsets, np.uint64(seed), out) == len(pieces)
    assert out.tolist() == [hash_bytes(piece, seed) for piece in pieces]


def test_slices_past_the_end_of_the_buffer_are_only_counted() -> None:
    data = np.frombuffer(b"abc", np.uint8)
    slots = np.zeros(3, np.uint64)
    assert hash_slices(data, np.arange(4, dtype=np.int64), np.uint64(7), slots[:2]) == 3
    assert slots.tolist() == [hash_bytes(b"a", 7), hash_bytes(b"b", 7), 0]


def test_the_same_term_of_two_attributes_has_two_hashes() -> None:
    hashes = {hash_bytes(b"ipad", attribute_seed(name)) for name in ("text", "title", "größe", "")}
    assert len(hashes) == 4


def test_low_bits_spread_evenly_over_similar_terms() -> None:
    slots = np.bincount([hash_bytes(b"term%d" % i) & 63 for i in range(6400)], minlength=64)
    # 100 expected in each; five standard deviations of a fair hash are 50.
    assert 50 < slots.min() <= slots.max() < 150
