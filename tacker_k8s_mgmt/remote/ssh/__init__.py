"""SSH: logins, sessions, host keys, bastions; the only code that knows paramiko."""
