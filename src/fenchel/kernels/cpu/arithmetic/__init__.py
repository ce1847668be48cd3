"""Elementary functions in forms that loops can vectorize, and vectors of one number per row."""
