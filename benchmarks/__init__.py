"""Speed of fenchel beside PyTorch and other packages: `python -m benchmarks [--device cuda]`.

`problems` says what is asked and `inputs` with which tensors, `registry`, `attention` and `peers` who
competes, `compilation` what is made ready before, `timing` how one call is timed, `runner` in which
order, `rows` what is kept of it, `environment` on what it ran, `report`, `picture` and `styles` how it
is shown, `progress` what is seen meanwhile. `against` compares two commits,
`ablations` the CPU kernels with and without each special path.
"""
