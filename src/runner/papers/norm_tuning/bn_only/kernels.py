"""What stands between the products of a step on scales and shifts, compiled for the CPU: one pass
each.

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
def descend_first(delta, active, h1, gamma1, beta1):
    """The step of the first scales and shifts; delta (R, N, m): the rate times dL / d(active)."""
    zero = h1.dtype.type(0)
    R, N, m = h1.shape
    total, along = np.empty(m, h1.dtype), np.empty(m, h1.dtype)
    for r in range(R):
        total[:], along[:] = zero, zero  # summed before they meet the parameters, which are larger
        for n in range(N):
            for i in range(m):
                d = zero if active[r, n, i] <= zero else delta[r, n, i]
                total[i] += d
                along[i] += d * h1[r, n, i]
        for i in range(m):
            beta1[r, i] -= total[i]
            gamma1[r, i] -= along[i]


@one_pass
def descend_second(h2, labels, gamma2, beta2, rate, losses):
    """The loss before the step, and the step of the second scales and shifts.

    Shapes: h2 (R, d, N), labels (R, N), gamma2 and beta2 (R, d), losses (R,). In place of h2 stands
    the rate times dL / dh2.
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
        factor = h2.dtype.type(2) * rate / h2.dtype.type(N)
        for i in range(d):
            gamma, beta = gamma2[r, i], beta2[r, i]
            total, along = zero, zero
            for n in range(N):
                h = h2[r, i, n]
                z = gamma * h + beta
                step = zero if z <= zero else factor * residual[n]
                total += step
                along += step * h
                h2[r, i, n] = gamma * step
            beta2[r, i], gamma2[r, i] = beta - total, gamma - along
