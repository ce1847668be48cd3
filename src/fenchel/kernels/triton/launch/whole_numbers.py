"""Whole numbers of tiles and programs."""

from __future__ import annotations


def ceiling(number: int, divisor: int) -> int:
    return -(-number // divisor)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(number - 1, 0).bit_length()
