"""Study `rank_gradients`: size of the gradients and rank at initialization, by depth and width."""
