"""Effects, against an SSH server in this process."""
