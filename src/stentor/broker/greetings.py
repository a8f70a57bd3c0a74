"""What brokers that greet compare first: digests by buckets, so that only what differs is said.

What has a name or an id is in the bucket of its name. A bucket's digest does not depend on the
order in which its contents came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from stentor.broker.interest import AnyInterest, Interest
from stentor.broker.live_events import BrokerLiveEvents
from stentor.broker.messages import GoneEvent, interest_to_json
from stentor.errors import RecordError

BUCKETS: Final = 256
#: Interests, ids or withdrawn events of one greeting; what is more comes in several.
MOST_OF_GREETING: Final = 2_000
_BYTES: Final = 8
_ENCODE: Final = msgspec.json.Encoder().encode

Digests = tuple[int, ...]


class LinkDigest(NamedTuple):
    """What a broker holds of a neighbour, a digest for each bucket.

    *interests* are what the neighbour wants, *live_events* those that both are known to have,
    *gone* what is known of withdrawn events.
    """

    interests: Digests
    live_events: Digests
    gone: Digests

    def to_bytes(self) -> bytes:
        """As it travels."""
        return b"".join(one.to_bytes(_BYTES, "big") for part in self for one in part)

    @classmethod
    def from_bytes(cls, raw: bytes) -> LinkDigest:
        """What `to_bytes` made *raw* of."""
        if len(raw) != 3 * BUCKETS * _BYTES:
            raise RecordError("no digest of a link")
        found = [int.from_bytes(raw[at : at + _BYTES], "big") for at in range(0, len(raw), _BYTES)]
        return cls(*(tuple(found[at : at + BUCKETS]) for at in range(0, len(found), BUCKETS)))

    def differing(self, other: LinkDigest) -> tuple[frozenset[int], ...]:
        """The buckets that differ, of each of the three."""
        return tuple(
            frozenset(at for at in range(BUCKETS) if mine[at] != theirs[at])
            for mine, theirs in zip(self, other, strict=True)
        )


def digest(text: bytes) -> int:
    """A number of 63 bits, so that SQLite can hold it."""
    return int.from_bytes(blake2b(text, digest_size=_BYTES).digest(), "big") >> 1


def bucket(name: str) -> int:
    """The bucket of what is called *name*."""
    return digest(name.encode()) % BUCKETS


def fingerprint(interest: AnyInterest) -> tuple[int, int]:
    """The bucket and the digest of *interest*; of a subscription computed once."""
    if isinstance(interest, Interest):
        if interest.fingerprint is None:
            text = _ENCODE([interest.name, interest_to_json(interest.subscription)])
            interest.fingerprint = bucket(interest.name), digest(text)
        return interest.fingerprint
    return bucket(interest.name), digest(_ENCODE([interest.name, interest.ranges]))


def link_digest(
    interests: Iterable[AnyInterest], ids: Iterable[str], events: BrokerLiveEvents
) -> LinkDigest:
    """The digest of *interests*, of the live events *ids*, and of what is gone.

    Cost: 1 µs for each.
    """
    of_interests, of_live, of_gone = ([0] * BUCKETS for _ in range(3))
    for interest in interests:
        at, found = fingerprint(interest)
        of_interests[at] ^= found
    for id in ids:
        found = digest(f"{id}\n{events.version(id)}".encode())
        of_live[bucket(id)] ^= found
    for id, version, _ in events.gone():
        of_gone[bucket(id)] ^= digest(f"{id}\n{version}".encode())
    return LinkDigest(tuple(of_interests), tuple(of_live), tuple(of_gone))


class GreetingPart(NamedTuple):
    """What one greeting says of some *buckets*."""

    buckets: tuple[int, ...]
    interests: tuple[AnyInterest, ...]
    live_ids: frozenset[str]
    versions: Mapping[str, int]
    gone: tuple[GoneEvent, ...]


def greeting_parts(
    announced: Iterable[AnyInterest],
    events: BrokerLiveEvents,
    differing: tuple[frozenset[int], ...],
) -> list[GreetingPart]:
    """What is to be said of the buckets that differ, in parts of a bounded size; at least one."""
    of_interests, of_live, of_gone = differing
    interests: dict[int, list[AnyInterest]] = {at: [] for at in sorted(of_interests)}
    for one in announced:
        if (at := fingerprint(one)[0]) in interests:
            interests[at].append(one)
    live = [id for id in events if bucket(id) in of_live] if of_live else []
    gone = [one for one in events.gone() if bucket(one[0]) in of_gone] if of_gone else []
    parts: list[GreetingPart] = []
    some: list[int] = []
    count = 0
    for at, found in interests.items():
        if some and count + len(found) > MOST_OF_GREETING:
            parts.append(_part(some, interests))
            some, count = [], 0
        some.append(at)
        count += len(found)
    parts.append(_part(some, interests))
    versions = events.versions()
    for start in range(0, max(len(live), len(gone)), MOST_OF_GREETING):
        ids = live[start : start + MOST_OF_GREETING]
        held = {id: versions[id] for id in ids if id in versions}
        ended = tuple(gone[start : start + MOST_OF_GREETING])
        parts.append(GreetingPart((), (), frozenset(ids), held, ended))
    return parts


def _part(buckets: list[int], interests: Mapping[int, list[AnyInterest]]) -> GreetingPart:
    wanted = tuple(one for at in buckets for one in interests[at])
    return GreetingPart(tuple(buckets), wanted, frozenset(), {}, ())
