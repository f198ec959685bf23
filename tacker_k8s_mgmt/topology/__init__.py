"""Which VMs, members and connection points there are, by identity; no I/O."""
