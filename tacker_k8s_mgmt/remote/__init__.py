"""Effects: the only code that touches other hosts and services."""
