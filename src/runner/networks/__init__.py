"""Networks that more than one paper uses."""
