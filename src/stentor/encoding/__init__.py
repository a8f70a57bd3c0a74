"""From the model to columns: terms, hashes, dictionaries and curves as flat arrays."""
