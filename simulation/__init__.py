"""Simulated days of the whole program except its sockets, all derived from one seed."""
