"""Brokers on the network, clients that are told, and a map to watch them on."""
