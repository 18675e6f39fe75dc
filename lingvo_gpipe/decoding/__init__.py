"""Search for the best sequences of a model that writes token by token."""
