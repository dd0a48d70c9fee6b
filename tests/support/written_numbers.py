"""Numbers as pages write them."""

NUMBER = r"[−-]?\d[\d,]*\.?\d*(?:e[−-]?\d+)?"
"""Pattern of a number, such as `−0.25`, `1,240` or `5.6e-5`."""


def rounds_to(value: float, text: str) -> bool:
    """Return whether a number, rounded as a text is, is this text."""
    text = text.replace("−", "-").replace(",", "")
    digits, _, power = text.partition("e")
    unit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return abs(value - float(text)) <= 0.51 * unit
