"""The process that runs atheris, which ends the process itself."""

import sys
from importlib import import_module

import atheris


def main() -> None:
    target = sys.argv.pop(1)
    with atheris.instrument_imports(include=["api_exporter"]):
        module = import_module(f"checks.fuzz.{target}")

    def attempt(data: bytes) -> None:
        if len(data) >= 2:
            module.attempt(data)

    atheris.Setup(sys.argv, attempt)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
