"""For tests of Stentor, and for the tests of those who use it: oracles and checked indexes."""
