"""Fenchel–Young losses: the operator, what they share with cross-entropy, and the calls."""
