"""The language's functions in Spark SQL."""
