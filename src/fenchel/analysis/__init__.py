"""Looking inside trained models: supports, attention maps, lattices, and the HTML report."""
