"""Networks that several papers use."""
