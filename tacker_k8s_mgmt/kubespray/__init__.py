"""What changes when kubespray releases: inventory, variables, capabilities; no I/O."""
