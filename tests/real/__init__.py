"""Tests in a laboratory whose VMs boot systemd; ``make test`` does not run them."""
