"""Linear classifiers trained with Fenchel–Young losses: `fenchel.sklearn` has their public names."""
