"""`start`: a stream, micro-batch after micro-batch."""
