"""Additional statements of figure `bottleneck-annealing`, a control for paper D's figure 1.

The rules were written before any run of this figure. The gains and learning rates are those of the
two training procedures in figure `bottleneck-recipes`.
"""

from runner.papers.bottleneck_structure.annealing import quantities as q
from runner.results.claims import ours

SOURCE = "supplementary to paper D, figure 1"

CLAIMS = {
    "bottleneck-annealing": [
        ours(
            "annealing-fits-deeper",
            "from equal initial weights and with equal learning rates, annealed training fits"
            " figure 1's task at more depths than training with weight decay λ throughout",
            SOURCE,
            q.more_depths("annealed", "constant").above(0),
        ),
        ours(
            "annealing-lowers-loss",
            "from equal initial weights and with equal learning rates, annealed training ends at a"
            " lower loss on figure 1's task than training with weight decay λ throughout, where"
            " both fit",
            SOURCE,
            q.loss_ratio("constant", "annealed").above(1),
        ),
        ours(
            "larger-weights-fit-deeper",
            "with weight decay λ throughout, networks fit figure 1's task at more depths if they"
            " have the initial weights and the learning rate of annealed training",
            SOURCE,
            q.more_depths_by_gain("constant", 1.2, than=1.0).above(0),
        ),
    ]
}
