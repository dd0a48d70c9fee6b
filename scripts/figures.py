"""`make figures`: every figure at the chosen scale, with a summary."""

import sys

from runner.everything import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
