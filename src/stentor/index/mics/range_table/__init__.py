"""The table of merged ranges: what is announced to a listener (Algorithms 1 and 2)."""
