"""Studies of transformers: the package that docs/tutorial.md builds."""
