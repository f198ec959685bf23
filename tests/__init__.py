"""The tests: unit, contract (the installed Tacker) and integration (in the lab)."""
