"""Random ops draw from the generators as eager does."""

import pytest
import torch
import torch.nn.functional as F

X = torch.arange(6.0)

RANDOM = {
    "rand": lambda x: torch.rand(6) + x,
    "randn_like": lambda x: torch.randn_like(x) * x,
    "randint": lambda x: torch.randint(0, 9, (6,)) + x,
    "randperm": lambda x: x[torch.randperm(6)] * 2,
    "bernoulli": lambda x: torch.bernoulli(torch.full((6,), 0.5)) * x,
    "bernoulli_": lambda x: torch.empty(6).bernoulli_(0.3) * x,
    "uniform_ and normal_": lambda x: torch.empty(6).uniform_() + torch.empty(6).normal_() * x,
    "dropout": lambda x: F.dropout(x * 2, 0.5, training=True) + 1,
    "dropout_": lambda x: F.dropout(x * 2, 0.5, training=True, inplace=True) + 1,
    "feature dropout": lambda x: F.dropout1d(x.view(3, 2) * 2, 0.5, training=True) + 1,
    "alpha dropout": lambda x: F.alpha_dropout(x * 2, 0.5, training=True) + 1,
    "rrelu": lambda x: F.rrelu(x - 3, training=True) * 2,
    "multinomial": lambda x: torch.multinomial(x + 1, 3) * 2,
    "gumbel_softmax": lambda x: F.gumbel_softmax(x * 2) + 1,
    "exponential_": lambda x: torch.empty(6).exponential_() + x,
    "attention dropout": lambda x: F.scaled_dot_product_attention(*[x.view(1, 1, 3, 2) * 2] * 3, dropout_p=0.5) + 1,
    "draw that nobody reads": lambda x: (torch.rand(100), x + torch.rand(6))[1],
    "draw into the argument": lambda x: (x.normal_(), x * 2)[1],
    "normal of two tensors": lambda x: torch.normal(x, x + 1) * 2,
    "poisson": lambda x: torch.poisson(x) * 2,
}


@pytest.mark.parametrize("fn", RANDOM.values(), ids=RANDOM)
def test_same_draws_as_eager(check, fn):
    check(fn, lambda seed: (X * 0.5 + seed,), hits=False)


@pytest.mark.parametrize("fn", [RANDOM["rand"], RANDOM["dropout"]])
def test_the_generator_goes_on(livepool, same, fn):
    """The capture draws once, each replay once."""
    torch.manual_seed(5)
    graph = livepool.capture(fn, X)
    got = [graph.replay(X + i) for i in range(4)]
    torch.manual_seed(5)
    want = [fn(X), *[fn(X + i) for i in range(4)]][1:]
    same(got, want)


def _closure(generator):
    return lambda x: torch.bernoulli(torch.full((6,), 0.5), generator=generator) + torch.rand(6, generator=generator) * x


@pytest.mark.parametrize("make", [_closure, lambda g: lambda x: torch.empty(6).uniform_(generator=g) + x],
                         ids=["functional", "in place"])
def test_explicit_generator(livepool, same, make):
    replayed, eager = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    graph = livepool.capture(make(replayed), X)
    make(eager)(X)
    assert replayed.get_state().equal(eager.get_state())
    for i in range(4):
        same(graph.replay(X + i), make(eager)(X + i))
        assert replayed.get_state().equal(eager.get_state())


def test_generator_as_an_argument(livepool, same):
    def fn(x, generator):
        return torch.randn(6, generator=generator) + x * 2

    replayed, eager = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    graph = livepool.capture(fn, X, replayed)
    fn(X, eager)
    for i in range(4):
        same(graph.replay(X + i, replayed), fn(X + i, eager))
    with pytest.raises(livepool.ReplayMismatch, match=r"args\[1\]"):
        graph.replay(X, eager)


def test_explicit_generator_after_a_failed_guard(livepool):
    generator = torch.Generator().manual_seed(3)

    def fn(x):
        noise = torch.rand(6, generator=generator)
        return noise * 2 if x.sum() > 0 else noise

    graph = livepool.capture(fn, X)
    before = generator.get_state()
    with pytest.raises(livepool.GuardFailed):
        graph.replay(-X)
    assert generator.get_state().equal(before)


def _seeded(x):
    torch.manual_seed(0)
    return torch.rand(6) + x


def _forked(x):
    with torch.random.fork_rng(devices=[]):
        noise = torch.rand(6)
    return noise + x


def _state_set(x):
    torch.set_rng_state(torch.Generator().manual_seed(1).get_state())
    return torch.rand(6) + x


def _own_generator(x):
    return torch.rand(6, generator=torch.Generator().manual_seed(7)) + x


REFUSED = {"manual_seed": (_seeded, "generator"), "fork_rng": (_forked, "generator"), "set_rng_state": (_state_set, "generator"),
           "generator made inside": (_own_generator, "generator")}


@pytest.mark.parametrize("fn, match", REFUSED.values(), ids=REFUSED)
def test_refused(refused, fn, match):
    torch.manual_seed(11)
    refused(fn, X, match=match)


def test_refusal_leaves_the_generator_as_the_pass_did(livepool):
    torch.manual_seed(11)
    _seeded(X)
    want = torch.get_rng_state()
    torch.manual_seed(11)
    with pytest.raises(livepool.CaptureRefused):
        livepool.capture(_seeded, X)
    assert torch.get_rng_state().equal(want)


def test_explicit_generator_that_the_pass_seeds_is_seen_by_the_check(livepool):
    """manual_seed on a generator is no operator; the first replay on other bytes differs from the callable."""
    generator = torch.Generator()

    def fn(x):
        generator.manual_seed(7)
        return torch.rand(6, generator=generator) + x

    try:
        graph = livepool.capture(fn, X)
    except livepool.CaptureRefused:
        return
    with pytest.raises(livepool.CheckFailed):
        graph.replay(X + 1)
