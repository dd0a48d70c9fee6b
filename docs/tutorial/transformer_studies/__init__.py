"""Studies of transformers: the room that docs/tutorial.md builds."""
