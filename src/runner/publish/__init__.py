"""Many figures at once: all of them, the reference and its comparison, the gallery."""
