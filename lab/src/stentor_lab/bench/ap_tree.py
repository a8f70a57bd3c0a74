"""The AP-Tree: matching, adaptivity, maintenance, moving subscriptions, and real data if there is.

Paper: AP-Tree, section 5.
"""

from __future__ import annotations

from stentor_lab.bench import (
    ap_tree_adaptivity,
    ap_tree_maintenance,
    ap_tree_matching,
    ap_tree_moving,
    ap_tree_real,
)
from stentor_lab.result import BenchOptions, Table


def tables(options: BenchOptions) -> tuple[Table, ...]:
    """Tables after those of the paper; *size* is of subscriptions, and of live messages."""
    return (
        *ap_tree_matching.tables(options),
        ap_tree_adaptivity.table(options),
        *ap_tree_maintenance.tables(options),
        *ap_tree_moving.tables(options),
        *ap_tree_real.tables(options),
    )
