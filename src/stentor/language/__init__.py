"""Expression text → tree → normal form; `evaluate` defines what a match is."""
