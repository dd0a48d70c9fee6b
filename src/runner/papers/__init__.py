"""The four papers: a room each, in it theory, shared engines, and a folder for each study."""
