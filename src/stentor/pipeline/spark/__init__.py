"""A Spark session that suits Stentor, and what went wrong in one, in sentences."""
