"""entmax and its derivatives along any dimension of a CUDA tensor.

    entmax                  argmax_p <p, x> - Omega_alpha(p) over the simplex
    entmax_backward         its Jacobian times a vector, from p alone
    entmax_backward_alpha   the same, and the gradient in alpha

`alpha` is a number, or a tensor with one value per row (size 1 along `dim`, broadcast elsewhere);
`mask` is boolean and broadcasts. No call waits for the device, so CUDA graphs can capture all of them.
`forward` chooses the kernel, in this order; "dense" means neighbouring columns and no mask:

    kernel           alpha                 columns            rows and dtype
    packed_half      3/2, 2                4097 to 32768      from 1024 rows, half precision, dense
    alpha_per_row    a tensor              up to 8192         ordered by `row_order` if there are many
    largest_scores   above 2               17 to 8192         from 5 columns on in half precision
    largest_scores   above 1.45, not 3/2   513 to 8192
    on_chip          1, 3/2, 2             up to 32768
    on_chip          any other number      up to 8192
    softmax          1                     from 32769
    streamed_rows    3/2, 2                65537 to 131072    from 2048 rows, dense
    near_softmax     below 1.2             from 8193
    long_rows        all others            from 8193
"""

from fenchel.kernels.triton.entmax.backward import entmax_backward, entmax_backward_alpha
from fenchel.kernels.triton.entmax.forward import entmax, entmax_into

__all__ = ["entmax", "entmax_backward", "entmax_backward_alpha", "entmax_into"]
