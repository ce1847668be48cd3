"""Maps from scores to probabilities, one file per map."""
