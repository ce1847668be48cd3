"""Operators and their implementations: `reference` defines what is correct, the others are fast."""
