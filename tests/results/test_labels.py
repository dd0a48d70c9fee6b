"""Printed names of columns and values."""

from runner.results.labels import Names


def test_a_file_of_images_keeps_its_name():
    names = Names({}, {"sgd": "SGD"}, {}, {})
    assert names.value("rgb_u8.npz") == "rgb_u8.npz" and names.value("sgd") == "SGD"
    assert names.value("batch_no_mean") == "batch no mean"
