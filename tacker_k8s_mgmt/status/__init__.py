"""What ``cluster check`` compares and reports; no I/O."""
