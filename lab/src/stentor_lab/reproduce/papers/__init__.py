"""The experiments, paper by paper: each module has its `PAPER`."""
