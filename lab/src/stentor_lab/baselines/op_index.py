"""OpIndex: expressions by their rarest attribute, then by attribute and operator, and counting.

An interval is two predicates, at least and at most. Lists are compared entry by entry.

Paper: Zhang, Chan, Tan: An efficient publish/subscribe index for e-commerce databases (2014).
"""

from __future__ import annotations

from stentor_lab.baselines.counting import OPERATORS, CountingRival


class OpIndex(CountingRival):
    """Operators below a pivot, counted."""

    name = "op_index"
    scheme = OPERATORS
