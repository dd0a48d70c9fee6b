"""`make reference`, `make figures-from-reference`, `make compare`."""

import sys

from runner.reference import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
