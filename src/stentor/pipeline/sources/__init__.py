"""Where records come from: JSON lines, CSV, Parquet, Delta, Kafka."""
