"""Printed names of columns, values and conditions in pictures, tables and rules of paper C."""

MEASURES = {
    "ratio": "fraction of ‖W‖²",
    "remainder": "change of the others",
    "log_flow_time": "log t",
    "data": "dataset",
    "item": "item of Theorem 1",
}
"""What pictures and printed tables call the columns of tables."""

NAMES = {
    "1 - operator_ratio": "1 − ‖W‖₂² / ‖W‖²",
    "1 - alignment": "1 − the alignment of neighboring layers",
}
"""What rules call values."""

CONDITIONS = {
    "pair in ('active', 'mixed')": "the entries of D are of neurons with equal activation patterns",
    "pair == 'full'": "all entries of D are taken",
    "pair == 'diagonal'": "the diagonal of D is taken",
    "pair == 'layer'": "whole layers are compared",
    "not linear": "the neurons are nonlinear",
    "linear": "the neurons are linear",
    "item == 0": "no item of Theorem 1 applies",
    "not promised": "the paper does not say that they are conserved",
    "promised": "the paper says that they are conserved",
    "not diverged": "training does not diverge",
    "separates": "the risk falls below loss(0) / n",
}
"""What rules call conditions."""

UNMET = {
    "not diverged": "training diverges",
    "separates": "the risk never falls below loss(0) / n",
}
"""What notes say of the measurements that do not meet such a condition."""
