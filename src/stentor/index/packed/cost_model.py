"""Which home an alternative goes to."""

from __future__ import annotations

from stentor.encoding.columns import Int64, SubscriptionColumns


def choose_homes(columns: SubscriptionColumns, alternatives: Int64) -> dict[str, Int64]:
    """*alternatives*, each under the name of its home."""
    return {"blocks": alternatives}
