"""Study `rank_chain`: figures 3, 8 and 9, Lemmas 3 and 7 of paper B."""
