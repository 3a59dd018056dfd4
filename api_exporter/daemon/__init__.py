"""The process under twistd and a supervisor: its start, log lines and end."""
