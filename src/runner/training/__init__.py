"""Training that more than one paper uses: steps with a rate for each network, and the loop."""
