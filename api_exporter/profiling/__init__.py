"""Profiles of this process's time and memory, for pprof, without HTTP."""
