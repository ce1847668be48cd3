"""The oracle: plain PyTorch, in float64, one function an operator."""
