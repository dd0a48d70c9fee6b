import torch

from runner.core.streams import generator, generators


def draw(stream):
    return torch.randn(4, generator=stream)


def test_a_stream_depends_on_seed_replicate_and_purpose_alone():
    first = draw(generator(0, 1, "data"))
    assert torch.equal(first, draw(generator(0, 1, "data")))
    for other in (generator(1, 1, "data"), generator(0, 2, "data"), generator(0, 1, "order")):
        assert not torch.equal(first, draw(other))


def test_a_replicate_draws_the_same_in_any_stack():
    assert torch.equal(draw(generators(3, 5, "x")[2]), draw(generators(3, 9, "x")[2]))
