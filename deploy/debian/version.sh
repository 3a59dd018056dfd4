#!/bin/sh
# Print the form that Debian gives a version: 1.2.3rc1 is 1.2.3~rc1, which comes before 1.2.3.
set -eu
echo "$1" | sed 's/\(rc\|\.dev\)/~\1/; s/~\./~/'
