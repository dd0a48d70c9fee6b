"""What stands between the products of a gradient by scales and shifts, compiled for the CPU: one
pass each.

All compiled code stands in this file, since numba's cache watches no other; importing it compiles
nothing.
"""

import numpy as np

from runner.core.compiling import one_pass


@one_pass
def activate(h1, gamma1, beta1, active):
    """`active <- relu(gamma1 h1 + beta1)`. Shapes: h1 and active (R, N, m), others (R, m)."""
    zero = h1.dtype.type(0)
    R, N, m = h1.shape
    for r in range(R):
        for n in range(N):
            for i in range(m):
                z = gamma1[r, i] * h1[r, n, i] + beta1[r, i]
                active[r, n, i] = zero if z <= zero else z


@one_pass
def backward_first(delta, active, h1, of_gamma1, of_beta1):
    """dL / d(gamma1) and dL / d(beta1), (R, m); delta (R, N, m) is dL / d(active)."""
    zero = h1.dtype.type(0)
    R, N, m = h1.shape
    total, along = np.empty(m, h1.dtype), np.empty(m, h1.dtype)
    for r in range(R):
        total[:], along[:] = zero, zero
        for n in range(N):
            for i in range(m):
                d = zero if active[r, n, i] <= zero else delta[r, n, i]
                total[i] += d
                along[i] += d * h1[r, n, i]
        for i in range(m):
            of_beta1[r, i], of_gamma1[r, i] = total[i], along[i]


@one_pass
def backward_second(h2, labels, gamma2, beta2, of_gamma2, of_beta2, losses):
    """The loss, dL / d(gamma2) and dL / d(beta2).

    Shapes: h2 (R, d, N), labels (R, N), losses (R,), others (R, d). In place of h2 stands
    dL / d(h2).
    """
    zero = h2.dtype.type(0)
    R, d, N = h2.shape
    for r in range(R):
        residual = -labels[r]
        for i in range(d):
            gamma, beta = gamma2[r, i], beta2[r, i]
            for n in range(N):
                z = gamma * h2[r, i, n] + beta
                residual[n] += zero if z <= zero else z
        square = zero
        for n in range(N):
            square += residual[n] * residual[n]
        losses[r] = square / h2.dtype.type(N)
        factor = h2.dtype.type(2) / h2.dtype.type(N)
        for i in range(d):
            gamma, beta = gamma2[r, i], beta2[r, i]
            total, along = zero, zero
            for n in range(N):
                h = h2[r, i, n]
                z = gamma * h + beta
                delta = zero if z <= zero else factor * residual[n]
                total += delta
                along += delta * h
                h2[r, i, n] = gamma * delta
            of_beta2[r, i], of_gamma2[r, i] = total, along
