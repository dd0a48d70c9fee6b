"""L-BFGS on `C(f) + lambda ||theta||^2` of one network, compiled for the CPU.

Pruned networks have about ten neurons in a layer. A step takes a tenth of a millisecond, and Python
would double this time. Therefore one call is a whole descent. All compiled code is in this file,
because numba's cache watches no other file. An import compiles nothing.

A layer is a matrix (n_l, n_{l-1} + 1), whose last column is the bias. A representation has samples
as columns and a last row of ones. theta is one vector with all layers, and so is its gradient.
"""

from inspect import unwrap

import numba
import numpy as np

from runner.core.compiling import REORDERED, compiled

PAIRS, ITERATIONS = 20, 150
"""Number of pairs that L-BFGS stores, and of iterations between two checks of the loss."""

DECREASE, CURVATURE = 1e-4, 0.9
"""Constants of Wolfe's conditions."""

EVALUATIONS = 25
"""Largest number of evaluations of the loss along one line."""


def _part(function, **options):
    """Return a compiled function that only compiled code calls."""
    return numba.njit(error_model="numpy", fastmath=REORDERED, **options)(unwrap(function))


def _inlined(function):
    """Return `_part(function)`, inlined into the code of its caller.

    A separate function from numba's cache would sum in another order.
    """
    return _part(function, forceinline=True)


@_part
def _loss_and_gradient(theta, sizes, x, y, ridge, room, gradient):
    """Return the loss, and write its gradient into `gradient`.

    room: memory for all representations, and for two more of the largest.
    """
    L, N = len(sizes) - 1, x.shape[1]
    begin, H, widest = 0, x, 0
    at = 0
    for i in range(L):
        m, n = sizes[i + 1], sizes[i] + 1
        last = i == L - 1
        Z = room[at : at + m * N].reshape(m, N)
        np.dot(theta[begin : begin + m * n].reshape(m, n), H, Z)
        begin += m * n
        if not last:
            for row in range(m):
                for k in range(N):
                    Z[row, k] = max(Z[row, k], theta.dtype.type(0))
            room[at + m * N : at + (m + 1) * N] = 1
            H = room[at : at + (m + 1) * N].reshape(m + 1, N)
            at += (m + 1) * N
        widest = max(widest, m + 1)
    one, other = at, at + widest * N
    D = room[one : one + sizes[L] * N].reshape(sizes[L], N)
    cost, factor = 0.0, theta.dtype.type(2 / N)
    for row in range(sizes[L]):
        for k in range(N):
            d = D[row, k] - y[row, k]
            cost += d * d
            D[row, k] = d * factor
    norm, twice = 0.0, theta.dtype.type(2 * ridge)
    for i in range(L - 1, -1, -1):
        m, n = sizes[i + 1], sizes[i] + 1
        begin -= m * n
        if i:
            at -= n * N
            H = room[at : at + n * N].reshape(n, N)
        else:
            H = x
        np.dot(D, H.T, gradient[begin : begin + m * n].reshape(m, n))
        if i:
            W = theta[begin : begin + m * n].reshape(m, n)
            back = room[other : other + n * N].reshape(n, N)
            np.dot(W.T, D, back)
            for row in range(n - 1):
                for k in range(N):
                    if H[row, k] <= 0:
                        back[row, k] = 0
            D = room[other : other + (n - 1) * N].reshape(n - 1, N)
            one, other = other, one
    for k in range(len(theta)):
        norm += theta[k] * theta[k]
        gradient[k] += twice * theta[k]
    return cost / N + ridge * norm


@_part
def _inner(a, b):
    """Return the inner product of two vectors, summed in float64."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@_inlined
def _direction(gradient, steps, changes, first, count, direction):
    """Write the direction of L-BFGS into `direction` (Nocedal and Wright 2006, algorithm 7.4).

    steps, changes: pairs of a step and the change of the gradient. first: index of the oldest of
    `count` pairs.
    """
    pairs, alpha = len(steps), np.zeros(len(steps))
    for k in range(len(gradient)):
        direction[k] = -gradient[k]
    for j in range(count - 1, -1, -1):
        s, c = steps[(first + j) % pairs], changes[(first + j) % pairs]
        a = _inner(s, direction) / _inner(s, c)
        alpha[j] = a
        for k in range(len(gradient)):
            direction[k] -= gradient.dtype.type(a) * c[k]
    if count:
        s, c = steps[(first + count - 1) % pairs], changes[(first + count - 1) % pairs]
        scale = gradient.dtype.type(_inner(s, c) / _inner(c, c))
        for k in range(len(gradient)):
            direction[k] *= scale
    for j in range(count):
        s, c = steps[(first + j) % pairs], changes[(first + j) % pairs]
        b = gradient.dtype.type(alpha[j] - _inner(c, direction) / _inner(s, c))
        for k in range(len(gradient)):
            direction[k] += b * s[k]


@_part
def _cubic(a, fa, da, b, fb, db):
    """Return the minimizer, between a and b, of the cubic with these values and slopes at a, b."""
    one = da + db - 3 * (fa - fb) / (a - b)
    square = one * one - da * db
    low, high = min(a, b), max(a, b)
    if not square >= 0:
        return (low + high) / 2
    two = np.sqrt(square) * (1 if b > a else -1)
    t = b - (b - a) * (db + two - one) / (db - da + 2 * two)
    return min(max(t, low), high) if t == t else (low + high) / 2


@compiled
def descend(theta, sizes, x, y, ridge, gain):
    """Minimize the loss by L-BFGS, changing theta in place; return the loss.

    The descent ends when ITERATIONS iterations lower the loss by less than the fraction `gain`. A
    step satisfies Wolfe's strong conditions, or is the lowest of EVALUATIONS points along the line.

    - theta: all layers in one vector.
    - sizes: n_0 .. n_L, the widths of input, layers and output.
    - x: inputs (n_0 + 1, N), with a last row of ones. y: targets (n_L, N).
    - ridge: lambda.
    """
    n, N = len(theta), x.shape[1]
    room = np.empty((sizes.sum() + len(sizes) + 2 * (sizes.max() + 1)) * N, theta.dtype)
    steps, changes = np.empty((PAIRS, n), theta.dtype), np.empty((PAIRS, n), theta.dtype)
    gradient, direction = np.empty(n, theta.dtype), np.empty(n, theta.dtype)
    new, there, best = np.empty(n, theta.dtype), np.empty(n, theta.dtype), np.empty(n, theta.dtype)
    loss = _loss_and_gradient(theta, sizes, x, y, ridge, room, gradient)
    first, count, before, done = 0, 0, np.inf, 0
    while True:
        if done % ITERATIONS == 0:
            if not loss < (1 - gain) * before:
                return loss
            before = loss
        done += 1
        _direction(gradient, steps, changes, first, count, direction)
        slope = _inner(gradient, direction)
        if not slope < 0:
            if count == 0:
                return loss
            count = 0  # drop all pairs and follow the gradient
            continue
        t = 1.0 if count else min(1.0, 1 / np.abs(gradient).sum())
        low, f_low, d_low, high, f_high, d_high = 0.0, loss, slope, np.inf, 0.0, 0.0
        t_best, f_best = 0.0, loss
        for _ in range(EVALUATIONS):
            for k in range(n):
                new[k] = theta[k] + theta.dtype.type(t) * direction[k]
            f = _loss_and_gradient(new, sizes, x, y, ridge, room, there)
            d = _inner(there, direction)
            if f < f_best:
                t_best, f_best = t, f
                best[:] = there
            if not f <= loss + DECREASE * t * slope or (low > 0 and f >= f_low):
                high, f_high, d_high = t, f, d
            else:
                if abs(d) <= -CURVATURE * slope:
                    break
                if d * (t - low) >= 0:
                    high, f_high, d_high = low, f_low, d_low
                low, f_low, d_low = t, f, d
            if high == np.inf:
                t *= 4
                continue
            t = _cubic(low, f_low, d_low, high, f_high, d_high)
            width, a, b = abs(high - low), min(low, high), max(low, high)
            t = min(max(t, a + 0.1 * width), b - 0.1 * width)
            if width * np.abs(direction).max() < 1e-9:
                break
        if t_best == 0:
            if count == 0:
                return loss
            count = 0
            continue
        newest = (first + count) % PAIRS
        for k in range(n):
            steps[newest, k] = theta.dtype.type(t_best) * direction[k]
            changes[newest, k] = best[k] - gradient[k]
            theta[k] += steps[newest, k]
            gradient[k] = best[k]
        loss = f_best
        s, c = steps[newest], changes[newest]
        convex = _inner(s, c) > 1e-10 * _inner(c, c)
        if count == PAIRS:  # the oldest pair is overwritten
            first, count = (first + 1) % PAIRS, count - 1
        if convex:
            count += 1


@compiled
def balance(theta, sizes, sweeps, close):
    """Rescale all neurons in place until incoming and outgoing weights have equal norms.

    theta: all layers in one vector. sizes: n_0 .. n_L. A sweep rescales every neuron once by a
    factor. The sweeps end when no factor differs from 1 by more than `close`, or after `sweeps`
    sweeps.
    """
    for _ in range(sweeps):
        begin, furthest = 0, 0.0
        for i in range(1, len(sizes) - 1):
            m, n, after = sizes[i], sizes[i - 1] + 1, sizes[i + 1]
            A = theta[begin : begin + m * n].reshape(m, n)
            begin += m * n
            B = theta[begin : begin + after * (m + 1)].reshape(after, m + 1)
            for neuron in range(m):
                entering, leaving = 0.0, 0.0
                for k in range(n):
                    entering += A[neuron, k] * A[neuron, k]
                for k in range(after):
                    leaving += B[k, neuron] * B[k, neuron]
                if not (entering > 0 and leaving > 0):
                    continue
                factor = (leaving / entering) ** 0.25
                furthest = max(furthest, abs(factor - 1))
                for k in range(n):
                    A[neuron, k] *= factor
                for k in range(after):
                    B[k, neuron] /= factor
        if furthest < close:
            return
