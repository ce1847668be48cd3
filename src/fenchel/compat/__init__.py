"""Other packages' names over this library's functions: change one import."""

from fenchel.compat import entmax

__all__ = ["entmax"]
