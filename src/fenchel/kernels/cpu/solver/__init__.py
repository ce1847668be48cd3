"""The normalizer A of a row of entmax, and the probabilities that follow from it."""
