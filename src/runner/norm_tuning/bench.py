"""The benchmarks of paper A's studies."""

from runner.growth import Growth
from runner.norm_tuning import bench_bn_only, bench_constructions
from runner.norm_tuning.config import BnOnly, Constructions

BENCHES = {"bn_only": bench_bn_only.bench, "constructions": bench_constructions.bench}

GROWTHS = {
    "bn_only": Growth(
        BnOnly(target_width=10, train_samples=51_200, test_samples=20_000),
        {
            "target_width": [10, 20, 30],
            "width": [100, 200, 400],
            "replicates": [5, 10, 20],
            "train_samples": [51_200, 102_400, 204_800],
        },
    ),
    "constructions": Growth(
        Constructions(target_width=20, width=800, depth=2, replicates=2),
        {
            "target_width": [10, 14, 20],
            "width": [800, 1600, 3200],
            "depth": [2, 4, 8],
            "replicates": [2, 4, 8],
            "points": [500, 1000, 2000],
        },
    ),
}
