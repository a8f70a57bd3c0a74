"""`python -m stentor_lab` is the command `stentor-lab`."""

from stentor_lab.cli import main

main()
