"""Statements of paper D about Example 20."""

from runner.papers.bottleneck_structure.example20 import quantities as q
from runner.results.claims import Claim

CLAIMS = {
    "bottleneck-example20": [
        Claim(
            "represents",
            "the explicit networks of Example 20 equal f(x, y, z) = (x, y, z + relu(x − y))"
            " on [0, 1]³, up to three roundings in each layer",
            "paper D, Example 20",
            q.error().always("<=", 3),
            note="largest error {max_error.max:.2g}",
        ),
        Claim(
            "norm-converges",
            "for the explicit networks of Example 20, the squared parameter norm minus 3 L goes"
            " to 0 as the depth L grows: R⁽⁰⁾(f) = 3, R⁽¹⁾(f) = 0",
            "paper D, Example 20 (its last line lacks a factor (L − 2)/2)",
            [q.off_the_closed_form().always("<=", 1), q.step("excess").always("<", 0)],
        ),
        Claim(
            "representations-diverge",
            "in the explicit networks of Example 20, the Lipschitz constants of the middle"
            " representations grow without bound as the depth grows",
            "paper D, Example 20",
            q.step("middle_lipschitz").always(">", 0),
        ),
    ]
}
