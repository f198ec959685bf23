"""All that depends on kubespray's releases: inventory, variables, capabilities."""
