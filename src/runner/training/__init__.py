"""Training that several papers use: optimizers with a learning rate per network, training loops."""
