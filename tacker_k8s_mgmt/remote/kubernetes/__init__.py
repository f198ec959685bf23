"""kubectl and etcdctl on the control planes."""
