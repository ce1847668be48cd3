"""The search for the normaliser of a row that is at hand, whatever holds it."""
