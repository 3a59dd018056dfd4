"""Profiles of this process's time and memory, for pprof. It knows no HTTP."""
