"""Arrow arrays → cells: doubles, strings, points and ranges as plain arrays, and the bad rows.

A cell means what the same value means in a dict (`model/value.py`).
"""
