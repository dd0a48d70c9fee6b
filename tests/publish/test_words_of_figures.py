"""What the figures of the reference say: one spelling, decimals in full, numbers with their %."""

import re

import pandas as pd
import pytest
from runner.results.figures import caption_of, header_of

from runner.core.catalogue import SCALES
from runner.publish.reference import REFERENCE, kept_figure, read_tables
from runner.results.style import in_two

FOLDERS = {
    path.parent.name: path.parent for s in SCALES for path in REFERENCE.glob(f"{s}/*/claims.csv")
}
"""Of each figure that of the largest scale kept."""

WRONG = {
    "a decimal without its zero": r"(?<![\d.\w])\.\d",
    "a % on another line than its number": r"\d\s*\n\s*%|\d %",
    "British spelling": r"(?i)(normali|initiali|regulari|optimi|generali|standardi)s(e|ing|ation)",
}


@pytest.mark.parametrize("name", FOLDERS)
def test_what_stands_above_and_below_a_picture_is_well_written(name):
    figure, tables = kept_figure(FOLDERS[name]), read_tables(FOLDERS[name])
    above = header_of(figure, tables, pd.read_csv(FOLDERS[name] / "claims.csv"))
    header = "\n".join(in_two(above.finding)).replace(" %", "\u00a0%")
    for text in (header, above.what, caption_of(figure, tables)):
        for what, pattern in WRONG.items():
            assert not (found := re.search(pattern, text)), f"{what}: {found}"
