"""Several tensors on one storage: made in the pass, returned from it, and among the arguments."""

import pytest
import torch

VIEWS = {
    "data": lambda x: (x * 2).data + 1,
    "data of an input": lambda x: x.data + 1,
    "data returned": lambda x: (x * 2).data,
    "write through data": lambda x: (lambda y: (y.data.add_(1), y * 2)[1])(x * 2),
    "detach": lambda x: (x * 2).detach().exp(),
    "view of another dtype": lambda x: (x * 2).view(torch.int32).bitwise_and(0xFFFF).view(torch.float32) + 0,
    "view of a smaller dtype": lambda x: (x * 2).view(torch.uint8) + 1,
    "transpose returned": lambda x: (x * 2).t(),
    "permute returned": lambda x: (x * 2).view(2, 2, 6).permute(2, 0, 1),
    "slice returned": lambda x: (x * 2)[1:, ::2],
    "expanded returned": lambda x: (x * 2)[:1].expand(4, 6),
    "unsqueezed broadcast": lambda x: (x * 2)[:, None] + (x * 3)[None],
    "unbind": lambda x: [t + 1 for t in (x * 2).unbind(0)],
    "split returned": lambda x: (x * 2).split([1, 3]),
    "chunk, one kept": lambda x: (x * 2).chunk(2, 1)[1] + 1,
    "unfold": lambda x: (x * 2).unfold(1, 3, 1).sum(-1),
    "diagonal written": lambda x: (lambda y: (y.diagonal().fill_(7), y)[1])(x * 2),
    "select and stack": lambda x: torch.stack([(x * 2)[i] for i in range(4)]),
    "movedim": lambda x: (x * 2).movedim(0, 1).contiguous(),
    "swapaxes and reshape": lambda x: (x * 2).swapaxes(0, 1).reshape(3, 8),
    "t_ of an intermediate": lambda x: (x * 2).t_() + 1,
    "squeeze_ and unsqueeze_": lambda x: (x * 2).unsqueeze_(0).squeeze_(0).exp(),
    "real and imag": lambda x: (lambda c: c.real * c.imag)(torch.complex(x * 2, x * 3)),
    "view_as_complex": lambda x: torch.view_as_real(torch.view_as_complex((x * 2).view(4, 3, 2)) * 2j),
}


@pytest.mark.parametrize("fn", VIEWS.values(), ids=VIEWS)
def test_views(check, normal, fn):
    check(fn, normal((4, 6)), hits=False)


def test_output_that_is_an_input_is_that_very_tensor(check, normal, livepool):
    graph = check(lambda x, y: (x, (x + y) * 2, y), normal((3,), (3,)))
    x, y = normal((3,), (3,))(5)
    got = graph.replay(x, y)
    assert got[0] is x and got[2] is y


def test_output_that_is_a_view_of_an_input_shares_its_storage(check, normal):
    graph = check(lambda x: (x.t(), x[0], x.data, (x * 2).exp()), normal((3, 4)))
    (x,) = normal((3, 4))(5)
    got = graph.replay(x)
    x.fill_(9)
    assert all((t == 9).all() for t in got[:3])


def test_output_that_is_a_parameter(livepool, normal, same):
    layer = torch.nn.Linear(3, 3).eval()
    graph = livepool.capture(lambda x: (layer.weight, layer(x), layer.bias.data), *normal((2, 3))(0))
    for seed in (1, 2):
        got = graph.replay(*normal((2, 3))(seed))
        assert got[0] is layer.weight
        assert got[2].data_ptr() == layer.bias.data_ptr()
        same(got[1], layer(*normal((2, 3))(seed)))


def test_same_output_twice(check, normal):
    graph = check(lambda x: (lambda y: (y, y, [y]))(x * 2 + 1), normal((3,)))
    a, b, (c,) = graph.replay(*normal((3,))(5))
    assert a is b is c


def test_outputs_that_share_storage(check, normal):
    def fn(x):
        y = x.exp() * 2
        return y, y.t(), y[0]

    graph = check(fn, normal((3, 3)))
    for seed in (5, 6):
        base, transposed, row = graph.replay(*normal((3, 3))(seed))
        base.fill_(4)
        assert (transposed == 4).all() and (row == 4).all()


def test_outputs_are_the_callers(livepool, normal, same):
    """A later replay does not change what an earlier one returned."""
    def fn(x):
        return (x * 2 + 1).exp(), x + 1

    graph = livepool.capture(fn, *normal((8,))(0))
    inputs = [normal((8,))(seed) for seed in range(1, 6)]
    kept = [graph.replay(*each) for each in inputs]
    for each, got in zip(inputs, kept):
        same(got, fn(*each))


def test_unused_argument_and_constant_output(check, normal):
    check(lambda x, unused: (torch.zeros(3) + 1, x * 2, torch.tensor([1.0, 2.0])), normal((3,), (2,)), hits=False)


def test_constant_output_is_fresh_each_time(livepool):
    graph = livepool.capture(lambda x: torch.tensor([1.0, 2.0]), torch.zeros(1))
    graph.replay(torch.ones(1)).fill_(7)
    first = graph.replay(torch.ones(1)).fill_(8)
    assert graph.replay(torch.ones(1)).tolist() == [1.0, 2.0] and first.tolist() == [8.0, 8.0]


def _add_into(x, y):
    x.add_(y)
    return x * y


def _add_one(x, y):
    x.add_(1)
    return x * y


class TestAliasedArguments:
    """Which arguments share storage is part of what was captured."""

    def test_same_tensor_at_both(self, check, normal):
        check(_add_into, lambda seed: (lambda t: (t, t))(normal((4,))(seed)[0]), hits=False)

    def test_overlapping_at_both(self, check, normal):
        check(_add_one, lambda seed: (lambda t: (t[:4], t[2:6]))(normal((6,))(seed)[0]), hits=False)

    def test_same_tensor_at_capture_only(self, livepool, normal):
        (t,) = normal((4,))(0)
        graph = livepool.capture(_add_into, t, t)
        with pytest.raises(livepool.ReplayMismatch, match="args.*1.*shared its storage"):
            graph.replay(*normal((4,), (4,))(1))

    def test_same_tensor_at_replay_only(self, livepool, normal):
        graph = livepool.capture(_add_into, *normal((4,), (4,))(0))
        (t,) = normal((4,))(1)
        before = t.clone()
        with pytest.raises(livepool.ReplayMismatch, match="shares its storage"):
            graph.replay(t, t)
        assert t.equal(before)

    def test_other_overlap_at_replay(self, livepool, normal):
        (t,) = normal((6,))(0)
        graph = livepool.capture(_add_one, t[:4], t[2:6])
        (t,) = normal((6,))(1)
        with pytest.raises(livepool.ReplayMismatch, match="args"):
            graph.replay(t[:4], t[1:5])

    def test_identical_views_instead_of_the_same_tensor(self, livepool, normal, same):
        (t,) = normal((4,))(0)
        graph = livepool.capture(_add_into, t, t)
        for seed in (1, 2):
            (a,), (b,) = normal((4,))(seed), normal((4,))(seed)
            same(graph.replay(a, a.view(4)), _add_into(b, b.view(4)))
            same(a, b)

    def test_parameter_as_argument(self, livepool, normal, same):
        layer = torch.nn.Linear(4, 4).eval()
        graph = livepool.capture(lambda w, x: layer(x) @ w, layer.weight, *normal((2, 4))(0))
        (x,) = normal((2, 4))(1)
        same(graph.replay(layer.weight, x), layer(x) @ layer.weight)
        with pytest.raises(livepool.ReplayMismatch, match="state.*weight"):
            graph.replay(layer.weight.clone(), x)

    def test_state_as_argument_at_replay_only(self, livepool, normal):
        layer = torch.nn.Linear(4, 4).eval()
        graph = livepool.capture(lambda w, x: layer(x) @ w, *normal((4, 4), (2, 4))(0))
        with pytest.raises(livepool.ReplayMismatch, match="state.*weight"):
            graph.replay(layer.weight.detach(), *normal((2, 4))(1))


class TestComplexAndNegViews:
    FNS = {
        "conj": lambda x: x.conj() * 2,
        "conj returned": lambda x: (x * 2).conj(),
        "imag of conj": lambda x: (x * 2).conj().imag + 1,
        "imag of conj returned": lambda x: (x * 2).conj().imag,
        "resolve": lambda x: (x * 2).conj().resolve_conj() + x,
        "adjoint product": lambda x: (x * 2).mH @ x,
        "conj written": lambda x: (lambda y: (y.conj().add_(1j), y)[1])(x * 2),
        "conj and data": lambda x: (x * 2).conj().data + 1,
        "view after conj": lambda x: (lambda y: (y.conj(), y.data * 2)[1])(x * 2),
    }

    @pytest.mark.parametrize("fn", FNS.values(), ids=FNS)
    def test_right_or_refused(self, check, livepool, normal, fn):
        try:
            check(fn, normal((3, 3), dtype=torch.complex64), hits=False)
        except livepool.CaptureRefused as refusal:
            assert "outside the dispatcher" in str(refusal)

    def test_conjugated_argument(self, check, normal):
        check(lambda x: x * 2 + 1, lambda seed: (normal((3,), dtype=torch.complex64)(seed)[0].conj(),))

    @pytest.mark.parametrize("captured", [True, False])
    def test_conj_bit_is_compared(self, livepool, normal, captured):
        (x,) = normal((3,), dtype=torch.complex64)(0)
        graph = livepool.capture(lambda x: torch.view_as_real(x.resolve_conj()) * 2, x.conj() if captured else x)
        with pytest.raises(livepool.ReplayMismatch, match="conj"):
            graph.replay(x if captured else x.conj())

    def test_neg_bit_is_compared(self, livepool, normal):
        (x,) = normal((3,), dtype=torch.complex64)(0)
        plain = x.conj().imag.clone()
        graph = livepool.capture(lambda x: x.resolve_neg() * 2, x.imag)
        with pytest.raises(livepool.ReplayMismatch, match="neg"):
            graph.replay(x.conj().imag)
        assert plain.equal(x.conj().imag)
