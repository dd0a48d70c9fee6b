"""The operations between two products of many networks, compiled for the CPU: one pass each.

A row is one feature of one network; its columns are the N samples of a minibatch. A pass processes
a row while the row is in the nearest cache. All compiled code is in this file because numba's cache
watches no other file. Importing the module compiles nothing.
"""

from runner.core.compiling import one_pass


@one_pass
def activate(Z, bias, rectified):
    """Set `Z` to `relu(Z + bias)` in place, or to `Z + bias` if `rectified` is false.

    Shapes: Z (rows, N), bias (rows,).
    """
    zero = Z.dtype.type(0)
    for row in range(Z.shape[0]):
        b = bias[row]
        for n in range(Z.shape[1]):
            z = Z[row, n] + b
            Z[row, n] = zero if rectified and z <= zero else z


@one_pass
def activate_backward(D, H, bias_gradient, rectified):
    """Backpropagate through `activate`, in place.

    On entry, `D` is the derivative of the loss by H, the result of `activate`. On return, it is the
    derivative by the input of `activate`. D and H have the shape (rows, N). The array
    `bias_gradient` (rows,) is set to the derivative of the loss by the bias.
    """
    zero = D.dtype.type(0)
    for row in range(D.shape[0]):
        total = zero
        for n in range(D.shape[1]):
            d = zero if rectified and H[row, n] <= zero else D[row, n]
            D[row, n] = d
            total += d
        bias_gradient[row] = total


@one_pass
def normalize(Z, H, bias, scale, shift, mean, variance, factor, epsilon, centred, rectified):
    """Set `Z` to the normalized `Z + bias`, and `H` to `relu(scale * Z + shift)`, in place.

    Without `rectified` there is no relu. Z and H have the shape (rows, N), all other arrays
    (rows,). The arrays mean, variance and `factor = 1 / sqrt(variance + epsilon)` are set, too.
    Without `centred`, the mean is set to zero and the variance to the mean square.
    """
    zero, N = Z.dtype.type(0), Z.dtype.type(Z.shape[1])
    for row in range(Z.shape[0]):
        b, total = bias[row], zero
        for n in range(Z.shape[1]):
            total += Z[row, n] + b
        m = total / N if centred else zero
        b, square = b - m, zero
        for n in range(Z.shape[1]):
            z = Z[row, n] + b
            Z[row, n] = z
            square += z * z
        v = square / N
        f = Z.dtype.type(1) / (v + epsilon) ** Z.dtype.type(0.5)
        mean[row], variance[row], factor[row] = m, v, f
        gamma, beta = scale[row], shift[row]
        for n in range(Z.shape[1]):
            z = Z[row, n] * f
            Z[row, n] = z
            h = gamma * z + beta
            H[row, n] = zero if rectified and h <= zero else h


@one_pass
def normalize_backward(
    D, H, Z, scale, factor, bias_gradient, scale_gradient, shift_gradient, centred, rectified
):
    """Backpropagate through `normalize`, in place.

    On entry, `D` is the derivative of the loss by H. On return, it is the derivative by the input
    of `normalize`. H, Z and `factor` are results of `normalize`; D, H and Z have the shape (rows,
    N). The arrays `bias_gradient`, `scale_gradient` and `shift_gradient` (rows,) are set to the
    derivatives of the loss by bias, scale and shift.
    """
    zero, N = D.dtype.type(0), D.dtype.type(D.shape[1])
    for row in range(D.shape[0]):
        total, along = zero, zero
        for n in range(D.shape[1]):
            d = zero if rectified and H[row, n] <= zero else D[row, n]
            D[row, n] = d
            total += d
            along += d * Z[row, n]
        shift_gradient[row], scale_gradient[row] = total, along
        f = scale[row] * factor[row]
        m, a = total / N if centred else zero, along / N
        total = zero
        for n in range(D.shape[1]):
            d = f * (D[row, n] - m - a * Z[row, n])
            D[row, n] = d
            total += d
        bias_gradient[row] = total
