"""The benchmark of each study, in a module of its name: `compare()` and `GROWTH`."""
