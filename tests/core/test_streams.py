import pytest
import torch

from runner.core.streams import STATES, Streams, generator, generators, stream_seed


def draw(stream):
    return torch.randn(4, generator=stream)


def test_a_stream_depends_on_seed_replicate_and_purpose_alone():
    first = draw(generator(0, 1, "data"))
    assert torch.equal(first, draw(generator(0, 1, "data")))
    for other in (generator(1, 1, "data"), generator(0, 2, "data"), generator(0, 1, "order")):
        assert not torch.equal(first, draw(other))


def test_a_replicate_draws_the_same_in_any_stack():
    assert torch.equal(draw(generators(3, 5, "x")[2]), draw(generators(3, 9, "x")[2]))


def state_of(stream):
    return stream.initial_seed() % STATES


def test_two_seeds_that_torch_takes_for_one_give_two_streams():
    """Replicates 4 and 13 of seed 43177 drew the same initial weights."""
    seeds = [stream_seed(43177, replicate, "initialisation") for replicate in (4, 13)]
    assert seeds[0] % STATES == seeds[1] % STATES
    streams = generators(43177, 14, "initialisation")
    assert not torch.equal(draw(streams[4]), draw(streams[13]))
    assert streams[4].initial_seed() == seeds[0]  # the lower replicate keeps its numbers
    assert torch.equal(
        draw(generator(43177, 13, "initialisation")),
        draw(generators(43177, 14, "initialisation")[13]),
    )


def test_a_purpose_gives_way_to_those_before_it_in_the_list():
    collide = colliding_purposes()
    listed = Streams(0, collide)
    one, other = (listed.generator(0, purpose) for purpose in collide)
    assert one.initial_seed() == stream_seed(0, 0, collide[0])
    assert state_of(one) != state_of(other)
    alone = Streams(0, collide).generator(0, collide[1])  # the earlier one is never drawn
    assert alone.initial_seed() == other.initial_seed()


def test_no_two_of_many_streams_share_a_state():
    listed = Streams(5, [f"p{number}" for number in range(1000)])
    states = {state_of(listed.generator(r, p)) for r in range(100) for p in listed.purposes}
    assert len(states) == 100_000


def test_a_purpose_that_is_not_listed_is_named():
    with pytest.raises(KeyError, match="no stream 'b': add it to purposes"):
        Streams(0, ["a"]).generator(0, "b")


def colliding_purposes():
    """Return two purposes of replicate 0 of seed 0 whose seeds torch takes for one."""
    seen = {}
    for number in range(1_000_000):
        purpose = f"purpose {number}"
        state = stream_seed(0, 0, purpose) % STATES
        if state in seen:
            return seen[state], purpose
        seen[state] = purpose
    raise AssertionError("no collision")
