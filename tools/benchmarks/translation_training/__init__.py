"""Translation beside PyTorch: how many tokens a second are trained on."""
