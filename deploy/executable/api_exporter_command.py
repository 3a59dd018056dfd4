"""What the one-file executable starts with."""

import sys

import stand_ins

if "--health" not in sys.argv[1:]:  # which needs Python's own ssl
    stand_ins.install()

from api_exporter.entry import main

main()
