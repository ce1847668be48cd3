"""entmax and its derivatives on the CPU.

    entmax                  argmax_p <p, x> - Omega_alpha(p) over the simplex
    entmax_backward         its Jacobian times a vector, from p alone
    entmax_backward_alpha   the same, and the gradient in alpha

`alpha` is a number, or a tensor with one float64 per row. `forward` chooses how rows are solved: one by
one, or in batches of short rows (`short_rows_up_to_2` with `guesses` and `narrow_rows`, and
`short_rows_above_2`). The branches on alpha of rows that are solved one by one are in
`solver/normalizer.py`.
"""

from fenchel.kernels.cpu.entmax.backward import entmax_backward, entmax_backward_alpha
from fenchel.kernels.cpu.entmax.forward import entmax

__all__ = ["entmax", "entmax_backward", "entmax_backward_alpha"]
