"""Operators of other namespaces are one op each, whatever they do inside; they are run again, never left out."""

import pytest
import torch
import torch.nn.functional as F

X = torch.arange(6.0)


@pytest.fixture(scope="module")
def ops():
    """Custom operators, and how often their kernels ran."""
    ran = []

    @torch.library.custom_op("livepool_test::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        ran.append("scaled")
        return (x * by + 1).exp().log()

    @torch.library.custom_op("livepool_test::add_into", mutates_args={"x"})
    def add_into(x: torch.Tensor, y: torch.Tensor) -> None:
        ran.append("add_into")
        x.add_(y * 2)

    @torch.library.custom_op("livepool_test::host_sum", mutates_args=())
    def host_sum(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor(float(x.numpy().sum()))  # what the kernel does inside is its own affair

    @torch.library.custom_op("livepool_test::positive", mutates_args=())
    def positive(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0].clone()

    @torch.library.custom_op("livepool_test::pair", mutates_args=())
    def pair(xs: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return xs[0] + xs[-1], torch.stack(list(xs)).sum(0)

    library = torch.library.Library("livepool_composite", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: torch.cat([x, x]) * 1.0, "CompositeImplicitAutograd")
    yield torch.ops.livepool_test, torch.ops.livepool_composite, ran
    library._destroy()


def six(seed: int) -> tuple:
    return (X * (seed + 1) + 1,)


def test_functional(check, ops):
    check(lambda x: ops[0].scaled(x * 2, 0.5) + 1, six)


def test_composite_of_another_namespace_is_one_op(check, ops):
    graph = check(lambda x: ops[1].twice(x + 1) * 2, six)
    assert graph.report()["ops"] == 3


def test_mutating(check, ops):
    def fn(x):
        y = x * 2
        ops[0].add_into(y, x)
        return y.exp() + y

    check(fn, six)


def test_mutates_a_view(check, ops):
    def fn(x):
        y = x * 2
        ops[0].add_into(y[1:4], x[:3])
        return y + 0

    check(fn, six)


def test_mutates_the_argument(check, ops):
    def fn(x):
        ops[0].add_into(x, x + 1)
        return x * 2

    check(fn, six)


def test_list_and_tuple(check, ops):
    check(lambda x: [t * 2 for t in ops[0].pair([x + 1, x * 2, x])], six)


def test_kernel_that_reads_on_the_host(check, ops):
    check(lambda x: ops[0].host_sum(x * 2) * x, six)


def test_size_that_depends_on_data(livepool, ops, same):
    graph = livepool.capture(lambda x: ops[0].positive(x - 2.5) * 2, X)
    for x in (X + 0.25, X - 0.25):
        same(graph.replay(x), (x - 2.5)[x > 2.5] * 2)
    with pytest.raises(livepool.GuardFailed, match="livepool_test::positive"):
        graph.replay(X + 3)


def test_runs_though_nobody_reads_it(livepool, ops):
    graph = livepool.capture(lambda x: (ops[0].scaled(x, 2.0), x + 1)[1], X)
    ops[2].clear()
    graph.replay(X)
    assert ops[2] == ["scaled"]


def test_exception_of_a_kernel(livepool, same, ops):
    @torch.library.custom_op("livepool_test::picky", mutates_args=())
    def picky(x: torch.Tensor) -> torch.Tensor:
        if float(x.sum()) < 0:
            raise ValueError("negative")
        return x * 2

    graph = livepool.capture(lambda x: picky(x + 1) * 2, X)
    with pytest.raises(ValueError, match="negative"):
        graph.replay(-X - 5)
    for x in (X, X + 1):
        same(graph.replay(x), (x + 1) * 4)


@pytest.mark.parametrize("what", ["capture", "replay"])
def test_livepool_inside_a_kernel(livepool, same, what):
    """A kernel may itself replay a graph, or be refused a capture, while a pass runs."""
    inner = livepool.capture(lambda x: (x + 1).exp() * 2, X)

    def kernel(x: torch.Tensor) -> torch.Tensor:
        if what == "replay":
            return inner.replay(x)
        try:
            return livepool.capture(lambda x: (x + 1).exp() * 2, x).replay(x)
        except livepool.CaptureRefused:
            return (x + 1).exp() * 2

    op = torch.library.custom_op(f"livepool_test::inner_{what}", kernel, mutates_args=())
    graph = livepool.capture(lambda x: F.relu(op(x * 2) - 1) * 3, X)
    for x in (X / 4, X / 8, X / 16):
        same(graph.replay(x), F.relu((x * 2 + 1).exp() * 2 - 1) * 3)
