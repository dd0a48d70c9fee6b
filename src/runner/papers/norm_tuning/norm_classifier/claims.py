"""Additional claims about copies of a digit classifier with frozen random weights."""

from runner.papers.norm_tuning.norm_classifier import quantities as q
from runner.results.claims import ours

QUESTION = "supplementary to paper A, Remark 2 and Section 5"

CLAIMS = {
    "norm-classifier": [
        ours(
            "classifier-copied",
            "frozen random layers of width d_in d_out, with γ and β of the construction, predict"
            " the same classes as the digit classifier that they replace",
            QUESTION,
            q.agreement().always("=", 1),
        ),
        ours(
            "labels-beat-target",
            "γ and β of the frozen copy of a digit classifier, trained on the labels from γ = 1 and"
            " β = 0, end at a smaller training loss than the classifier",
            QUESTION,
            q.loss_ratio("target", "usual").above(1),
        ),
        ours(
            "labels-need-no-active-units",
            "the frozen copy of a digit classifier, trained on the labels from γ = 1 and β = 0,"
            " ends at a smaller training loss than with active hidden ReLUs",
            QUESTION,
            q.loss_ratio("active", "usual").above(1),
        ),
    ],
}
