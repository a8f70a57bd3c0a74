"""`match` and `build_snapshot`: whole DataFrames."""
