"""`stentor.toml`: one file that says what runs."""
