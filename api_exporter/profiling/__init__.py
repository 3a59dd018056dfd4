"""What this process does with its time and memory, for pprof. Knows nothing of HTTP."""
