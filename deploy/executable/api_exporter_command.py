"""The main module of the one-file executable."""

import sys

import stand_ins

if "--health" not in sys.argv[1:]:  # The health check needs the real ssl.
    stand_ins.install()

from api_exporter.entry import main

try:
    main()
except Exception:  # noqa: BLE001 - the loader would add a line of its own
    sys.excepthook(*sys.exc_info())
    sys.exit(1)
