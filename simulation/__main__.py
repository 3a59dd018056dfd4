"""Runs `command` with probes, which must be there before the exporter is imported."""

from importlib import import_module

from simulation import probes

if __name__ == "__main__":
    probes.install()
    import_module("simulation.command").main()
