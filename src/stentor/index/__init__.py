"""Columns → matches: one contract, one verifier, a folder per structure."""
