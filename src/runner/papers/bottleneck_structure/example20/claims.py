"""Statements of paper D about Example 20."""

from runner.papers.bottleneck_structure.example20 import quantities as q
from runner.results.claims import Claim

CLAIMS = {
    "bottleneck-example20": [
        Claim(
            "represents",
            "Example 20's explicit networks map (x, y, z) to (x, y, z + relu(x − y)) on [0,1]³, up"
            " to three rounding errors in each layer",
            "paper D, Example 20",
            q.error().always("<=", 3),
            note="the largest difference is {max_error.max:.2g}",
        ),
        Claim(
            "norm-converges",
            "in Example 20's explicit networks of depth L, the squared parameter norm minus 3 L"
            " goes to 0 as L grows",
            "paper D, Example 20 (its last line lacks a factor (L − 2)/2)",
            [q.off_the_closed_form().always("<=", 1), q.step("excess").always("<", 0)],
            note="so the representation cost of this function f has R⁽⁰⁾(f) = 3 and R⁽¹⁾(f) = 0",
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
