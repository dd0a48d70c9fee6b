"""`make gallery`: the pictures in docs/figures and the table of figures in the README."""

import sys

from runner.gallery import main

if __name__ == "__main__":
    sys.exit(main())
