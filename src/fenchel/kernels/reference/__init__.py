"""The reference: plain PyTorch in float64, one function per operator."""
