"""The normalizer of a row of entmax: first guesses, steps of Newton and Halley, brackets."""
