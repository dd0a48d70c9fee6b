"""One run: its identity, its folder, its execution and resumption, tables, provenance."""
