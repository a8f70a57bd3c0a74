"""TAMA: a table by attribute and level of discretisation, and counting.

An interval is cut into cells of all sizes, each as large as possible; a value is in one cell of
each level. TAMA itself is approximate at the finest cells: here the verifier has the last word.

Paper: Zhao, Wu: Towards approximate event processing in a large-scale content-based network (2011).
"""

from __future__ import annotations

from stentor_lab.baselines.counting import LEVELS, CountingRival


class Tama(CountingRival):
    """Cells of all sizes, counted."""

    name = "tama"
    scheme = LEVELS
