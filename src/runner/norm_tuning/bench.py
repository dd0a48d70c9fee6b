"""The benchmarks of paper A's studies."""

from runner.norm_tuning import bench_bn_only, bench_constructions

BENCHES = {"bn_only": bench_bn_only.bench, "constructions": bench_constructions.bench}
