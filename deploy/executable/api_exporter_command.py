"""The main module of the one-file executable."""

import sys

import stand_ins

if "--health" not in sys.argv[1:]:  # The health check needs the real ssl.
    stand_ins.install()

from api_exporter.entry import main

main()
