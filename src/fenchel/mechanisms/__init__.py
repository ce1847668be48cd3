"""Attention with any α: the functional call and its sparse weights, masks, and the layers."""
