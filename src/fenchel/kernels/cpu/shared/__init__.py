"""What several maps have in common: columns in whole vectors, batches of short rows, thresholds."""
