"""The largest curvature of the cost, for every network of a stack.

At a network that fits its data, the Hessian of `C = (1/N) sum_i ||f(x_i) - y_i||^2` is nearly
`(2/N) J^T J`. J is the derivative of the N d_out outputs by all parameters that gradient descent
changes: weights and biases. `J J^T` is the tangent kernel of these parameters. Each layer adds
`(J_l(x_i) J_l(x_j)^T) (alpha_{l-1}(x_i)^T alpha_{l-1}(x_j) + 1)` to it; the 1 is the bias's part,
which the kernel of Theorem 7 does not have.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from runner.papers.bottleneck_structure.stack import DepthStack


def largest_curvature(
    stack: DepthStack,
    x: Float[Tensor, "R d_in N"],
    v: Float[Tensor, "R d_out N"],
    iterations: int,
    bias: bool = True,
) -> tuple[Float[Tensor, " R"], Float[Tensor, "R d_out N"]]:
    """Return `2 ||J J^T|| / N` by power iteration, and the last vectors of the iteration.

    x: the inputs of every network. v: vectors to begin with. bias: whether J has the derivatives by
    the biases, too. The attribute `gradient` of the stack is overwritten.
    """
    N = x.shape[-1]
    size = v.new_zeros(len(v))
    for _ in range(iterations):
        v = v / v.norm(dim=(1, 2), keepdim=True)
        stack.descend(x, stack.predict(x).sub(v, alpha=N / 2))  # the gradient becomes J^T v
        v = _outputs_moved(stack, x, bias)
        size = v.norm(dim=(1, 2))
    return 2 * size / N, v


def _outputs_moved(
    stack: DepthStack, x: Float[Tensor, "R d_in N"], bias: bool
) -> Float[Tensor, "R d_out N"]:
    """Return J u, the derivative of the outputs as the parameters move along u.

    u: the attribute `gradient` of the stack. bias: whether the biases move.
    """
    H, moved = x, torch.zeros_like(x)
    out = x.new_empty(len(x), stack.d_out, x.shape[-1])
    for i, A in enumerate(stack.active):
        H, moved = H[:A], moved[:A]
        change = stack.gW[i] @ H + stack.W[i] @ moved
        if bias:
            change += stack.gb[i]
        H = torch.baddbmm(stack.b[i], stack.W[i], H).relu_()
        moved = change * (H > 0)
        if i + 1 in stack.groups:
            g, n = stack.groups[i + 1], stack.widths[i]
            out[g] = stack.gW[-1][g, :, :n] @ H[g] + stack.W[-1][g, :, :n] @ moved[g]
            if bias:
                out[g] += stack.gb[-1][g]
    return out
