"""Values that all other packages use: nodes, pods, drains, quorum, playbook runs."""
