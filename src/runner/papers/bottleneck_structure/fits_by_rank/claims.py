"""The statement of figure `bottleneck-ranks`, a control for paper D's statements on rank 1."""

from runner.papers.bottleneck_structure.fits_by_rank import quantities as q
from runner.results.claims import ours

CLAIMS = {
    "bottleneck-ranks": [
        ours(
            "rank-2-fits-more",
            "if networks of rank 1 and of rank 2 are trained in the same way on the same points of"
            " a rank-2 function, those of rank 2 fit for more sample sizes",
            "supplementary to paper D, sections 3.1 and 4.1",
            q.more_fits().above(0),
        ),
    ]
}
