"""The four papers: a package each, in it theory, shared engines, and a folder for each study."""
