"""Values and decisions about a cluster; no I/O."""
