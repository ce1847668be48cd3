"""Speed of fenchel beside PyTorch and the package `entmax`: `python -m benchmarks`.

`registry` says what is compared, `timing` how one call is timed, `runner` in which order, `rows`
what is kept of it, `environment` on what it ran, `report` and `picture` how it is shown.
"""
