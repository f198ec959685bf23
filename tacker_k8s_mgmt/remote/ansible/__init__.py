"""The Ansible server: the cluster's directory, its lock, playbook runs."""
