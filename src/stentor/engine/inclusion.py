"""What subscribers are told beside ids and scores, by pair of an event and a subscription."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pyarrow as pa

from stentor.encoding.columns import Int64
from stentor.index.verify.alternatives import NO_ALTERNATIVE

#: The columns, and their types.
INCLUDED: Final = {
    "owner": pa.large_string(),
    "alternative": pa.int64(),
    "attributes": pa.large_string(),
}


class Included(NamedTuple):
    """What is told with pairs of an event and a subscription."""

    owner: Any  # (pairs,) an Arrow array of strings; null where it has none
    alternative: Int64  # (pairs,)
    attributes: list[str | None]  # (events,) as JSON; None of one that nobody wants

    def columns(self, event: Int64) -> dict[str, Any]:
        """The columns of a table of pairs, each of which is of an *event*, by position."""
        texts = pa.array(self.attributes, INCLUDED["attributes"])
        return {
            "owner": self.owner,
            "alternative": pa.array(self.alternative, mask=self.alternative == NO_ALTERNATIVE),
            "attributes": texts.take(pa.array(event)),
        }


class ReportIncluded(NamedTuple):
    """What a report tells beside ids: of matches, and of updates and withdrawals."""

    matches: Included
    entered: Included
    left: Included
    stayed: Included
