"""Maps from scores to probabilities, one a file: the mathematics, the rule of derivatives, the call."""
