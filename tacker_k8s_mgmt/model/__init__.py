"""Values that know nothing above them: nodes, pods, drains, quorum, playbook runs."""
