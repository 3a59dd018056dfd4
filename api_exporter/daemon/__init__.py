"""Life under twistd and a supervisor: start, log lines, end."""
