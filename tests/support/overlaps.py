"""Which texts of a picture lie on other texts."""

from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text

SHARED = 0.02
"""The fraction of the smaller text's box that two boxes may share: boxes have room for accents and
descenders that most words do not have."""


def overlaps(picture: Figure) -> list[str]:
    """Return the pairs of texts that overlap, as `text | text`, in a picture that was drawn."""
    hidden = {label for axes in picture.axes for label in _labels_out_of_view(axes)}
    texts = [
        (text.get_text(), text.get_window_extent())
        for text in picture.findobj(Text)
        if text not in hidden and text.get_visible() and text.get_text().strip()
    ]
    found = []
    for (one, box), (other, beside) in combinations(texts, 2):
        both = box.intersection(box, beside)
        smaller = min(box.width * box.height, beside.width * beside.height)
        if both is not None and both.width * both.height > SHARED * smaller:
            found.append(f"{one} | {other}")
    return found


def _labels_out_of_view(axes) -> list[Text]:
    """Return the tick labels that matplotlib has made, but does not draw."""
    labels = []
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-9 * (high - low)
        for tick in (*axis.majorTicks, *axis.minorTicks):
            if not axis.get_visible() or not low - slack <= tick.get_loc() <= high + slack:
                labels += [tick.label1, tick.label2]
    return labels
