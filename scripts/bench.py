"""`make bench [STUDY=bn_only]`: speed against the straightforward way, and cost against size."""

import sys

from runner.bench_table import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
