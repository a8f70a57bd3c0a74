"""Deliveries to Kafka, and the connector that Spark needs for it."""
