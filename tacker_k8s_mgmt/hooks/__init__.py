"""Tacker's world to ours and back; the only code that imports tacker."""
