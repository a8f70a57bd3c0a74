"""Matching at scale on Apache Spark."""
