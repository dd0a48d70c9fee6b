"""`make report`: outputs/report/index.html, one page with every figure and every claim."""

import sys

from runner.report import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
