"""Packages of the four papers, each with its theory, engines, and a folder for each study."""
