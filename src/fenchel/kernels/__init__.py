"""Implementations of the operators: `reference` defines what is correct, the others are fast."""
