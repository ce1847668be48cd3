"""The GPU kernels, in Triton; nothing outside this package imports Triton."""
