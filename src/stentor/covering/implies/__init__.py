"""When one predicate implies another: one file per kind, as sets of values and over columns.

The sets of values are the definition; the compiled form over columns is tested against them.
"""

from __future__ import annotations
