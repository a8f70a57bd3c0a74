"""`stentor demo`: an afternoon in a city, by an engine and by a Spark stream.

The city is generated: the same seed gives the same afternoon in every process (of one NumPy
version).
"""
