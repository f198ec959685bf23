"""kubespray: its releases and checkouts, its inputs, and the runs of its playbooks."""
