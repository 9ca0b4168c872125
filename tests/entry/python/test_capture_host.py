"""Bytes that cross between the host and the pass: constants go in, guards come out, the rest is refused."""

import threading

import numpy as np
import pytest
import torch
from torch.utils.dlpack import to_dlpack

SIX = torch.arange(6.0)
OTHER = SIX * 2 + 1


def six(seed: int) -> tuple:
    return (SIX * (seed + 1) + seed,)


GO_IN = {
    "tensor of a list": lambda x: x + torch.tensor([1.0, 2, 3, 4, 5, 6]),
    "tensor of a number": lambda x: x + torch.tensor(2.0),
    "tensor of an array": lambda x: x + torch.tensor(np.arange(6, dtype=np.float32)),
    "tensor of another dtype": lambda x: x + torch.tensor([1, 2, 3, 4, 5, 6], dtype=torch.int8),
    "as_tensor of a list": lambda x: x + torch.as_tensor([1.0, 2, 3, 4, 5, 6]),
    "new_tensor": lambda x: x + x.new_tensor([1.0, 2, 3, 4, 5, 6]),
    "tensor written afterwards": lambda x: (lambda t: (t.add_(x), t * 2)[1])(torch.zeros(6) + torch.tensor([1.0] * 6)),
    "literal written afterwards": lambda x: (lambda t: (t.add_(x), t * 2)[1])(torch.tensor([1.0] * 6)),
    "literal moved": lambda x: x + torch.tensor([1.0] * 6).to(torch.float64),
    "list index": lambda x: x[[0, 2, 4]] * 2,
    "nested list index": lambda x: x.view(2, 3)[[0, 1], [2, 0]] * 2,
    "list index assigned": lambda x: (lambda y: (y.__setitem__([1, 3], 9.0), y + 1)[1])(x * 2),
    "tensor assigned to slice": lambda x: (lambda y: (y.__setitem__(slice(1, 3), torch.tensor([7.0, 8.0])), y + 1)[1])(x * 2),
    "None, Ellipsis and step": lambda x: x.view(2, 3)[None, ..., ::2] * 2,
    "empty and fill_": lambda x: torch.empty(6).fill_(3) + x,
    "empty and copy_": lambda x: torch.empty(6).copy_(x) * 2,
    "empty_like and zero_": lambda x: torch.empty_like(x).zero_() + x,
    "new_empty and slices": lambda x: (lambda y: (y[:3].copy_(x[3:]), y[3:].copy_(x[:3]), y * 2)[2])(x.new_empty(6)),
    "new_zeros, new_full, full": lambda x: x.new_zeros(6) + x.new_full((6,), 2.0) + torch.full((6,), 3.0) + x,
    "arange, linspace, eye": lambda x: torch.arange(6) + torch.linspace(0, 1, 6) + torch.eye(6) @ x,
    "empty of no element": lambda x: torch.cat([torch.empty(0), x]),
    "empty_like that is only looked at": lambda x: torch.zeros_like(torch.empty_like(x)) + x,
    "python numbers": lambda x: 2 * x + 3.5 - 1,
}


@pytest.mark.parametrize("fn", GO_IN.values(), ids=GO_IN)
def test_bytes_of_the_host(check, fn):
    check(fn, six, hits=False)


COME_OUT = {
    "item": lambda x: x * (x.sum() > 20).item(),
    "branch": lambda x: x * 2 if x.sum() > 20 else x + 1,
    "float": lambda x: x * float(x[0] > 0),
    "int": lambda x: x[: int((x > 3).sum())],
    "equal": lambda x: x * 2 if torch.equal(x, SIX_OF(x)) else x,
    "allclose": lambda x: x * 2 if torch.allclose(x, x.new_zeros(6), atol=8.0) else x,
    "mask": lambda x: x[x > 3] * 2,
    "masked_select": lambda x: x.masked_select(x > 3) * 2,
    "nonzero": lambda x: (x > 3).nonzero() * 2,
    "where with one argument": lambda x: x[torch.where(x > 3)] * 2,
    "unique": lambda x: (x // 4).unique() + 1,
    "repeat_interleave": lambda x: x.repeat_interleave((x > 3).long()) + 1,
    "bincount": lambda x: (x // 3).long().bincount() + 1,
    "range of item": lambda x: sum((x for _ in range(int((x > 3).sum()))), x * 0),
    "number returned": lambda x: (x * 2, (x > 3).sum().item()),
}


def SIX_OF(x):
    return x.new_zeros(6) + torch.arange(6)


@pytest.mark.parametrize("fn", COME_OUT.values(), ids=COME_OUT)
def test_what_the_program_reads_is_a_guard(livepool, same, fn):
    graph = livepool.capture(fn, SIX)
    same(graph.replay(SIX), fn(SIX))
    failed = 0
    for path in (SIX + 0.25 * torch.tensor([1.0, 0, 0, 0, 0, 0]), SIX + 100, -SIX, torch.zeros(6), SIX.flip(0), SIX % 2):
        before = path.clone()
        try:
            want = fn(path)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                graph.replay(path)
            continue
        try:
            got = graph.replay(path)
        except livepool.GuardFailed as failure:
            assert "captur" in str(failure)
            failed += 1
        else:
            same(got, want)
        same(path, before)
    assert failed > 0
    same(graph.replay(SIX), fn(SIX))  # after the failure


def test_item_branch_both_ways(livepool, same):
    def fn(x):
        return x * 2 if x.sum() > 20 else x + 1

    low, high = livepool.capture(fn, SIX), livepool.capture(fn, SIX + 10)
    same(low.replay(SIX * 1.1), SIX * 1.1 + 1)
    same(high.replay(SIX + 20), (SIX + 20) * 2)
    with pytest.raises(livepool.GuardFailed, match="_local_scalar_dense|is_nonzero"):
        low.replay(SIX + 20)
    with pytest.raises(livepool.GuardFailed):
        high.replay(SIX)


def test_nan_that_is_read_is_equal_to_itself(livepool, same):
    graph = livepool.capture(lambda x: x * 2 if x[0].item() != x[0].item() else x, torch.tensor([float("nan"), 1]))
    same(graph.replay(torch.tensor([float("nan"), 2])), torch.tensor([float("nan"), 4]))
    with pytest.raises(livepool.GuardFailed):
        graph.replay(torch.tensor([1.0, 2]))


def test_negative_zero_that_is_read_is_another(livepool):
    graph = livepool.capture(lambda x: x * np.copysign(1.0, x[0].item()), torch.tensor([0.0, 1]))
    with pytest.raises(livepool.GuardFailed):
        graph.replay(torch.tensor([-0.0, 1]))


def test_value_read_before_any_op(livepool, same):
    def fn(x, n):
        return x[: int(n)] * 2

    graph = livepool.capture(fn, SIX, torch.tensor(3))
    same(graph.replay(OTHER, torch.tensor(3)), OTHER[:3] * 2)
    with pytest.raises(livepool.GuardFailed):
        graph.replay(OTHER, torch.tensor(4))


def test_guard_failure_draws_nothing(livepool):
    """A replay that is given up leaves the generators as they were, so that the callable can run instead."""
    def fn(x):
        noise = torch.rand(6)
        return noise + x if x.sum() > 0 else x

    graph = livepool.capture(fn, SIX)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    with pytest.raises(livepool.GuardFailed):
        graph.replay(-SIX)
    assert torch.get_rng_state().equal(state)


def test_guard_after_a_write_is_refused(refused):
    def fn(x):
        x.add_(1)
        return x * 2 if x.sum() > 3 else x

    refused(fn, SIX.clone(), match="depends on data and comes after")


class Capsule:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


READS = {
    "tolist": lambda x: x * sum((x * 2).tolist()),
    "numpy": lambda x: x * float((x * 2).numpy()[0]),
    "numpy of the argument, before any op": lambda x: x * float(x.numpy()[1]),
    "asarray": lambda x: x * float(np.asarray(x * 2)[0]),
    "data_ptr": lambda x: x * (1 if (x * 2).data_ptr() else 0),
    "data assigned": lambda x: (lambda y: (setattr(y, "data", x), y * 2)[1])(x * 3),
    "data of an argument assigned": lambda x: (setattr(x, "data", x * 3), x * 2)[1],
    "__dlpack__": lambda x: torch.from_dlpack((x * 2)) + 1,
    "to_dlpack": lambda x: torch.from_dlpack(torch.utils.dlpack.to_dlpack(x * 2)) + 1,
    "torch.to_dlpack": lambda x: x * 2 if np.from_dlpack(Capsule(torch.to_dlpack(x))).max() < 100 else x * 3,
    "to_dlpack imported by its name": lambda x: x * float(np.from_dlpack(Capsule(to_dlpack(x * 2)))[1]),
    "torch.utils.dlpack.to_dlpack": lambda x: x * float(np.from_dlpack(Capsule(torch.utils.dlpack.to_dlpack(x * 2)))[1]),
    "numpy from_dlpack": lambda x: x * float(np.from_dlpack(x * 2)[1]),
    "storage": lambda x: x * (x * 2).untyped_storage()[0],
    "apply_": lambda x: (x * 2).apply_(lambda v: v + 1) + 1,
    "map_": lambda x: (x * 2).map_(x, lambda a, b: a + b) + 1,
    "deepcopy": lambda x: __import__("copy").deepcopy(x * 2) + 1,
    "from_numpy": lambda x: torch.from_numpy(np.ones(6, dtype=np.float32)) + x,
    "from_numpy returned": lambda x: torch.from_numpy(np.ones(6, dtype=np.float32)),
    "frombuffer": lambda x: torch.frombuffer(bytearray(24), dtype=torch.float32) + x,
    "empty filled by numpy": lambda x: (lambda e: (e.numpy().fill(1), e + x)[1])(torch.empty(6)),
    "empty returned": lambda x: torch.empty(6),
    "empty read": lambda x: torch.empty(6) + x,
    "view of empty returned": lambda x: (x * 2, torch.empty(6).view(2, 3)),
    "empty_like returned": lambda x: torch.empty_like(x),
    "new_empty read through a view": lambda x: x.new_empty(6).view(2, 3).t() * 2,
    "empty_strided": lambda x: torch.empty_strided((6,), (1,)) + x,
    "empty into storage of state": lambda x: x.copy_(torch.empty(6)),
    "resized and read": lambda x: (x * 2).resize_(12) + 1,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fn", READS.values(), ids=READS)
def test_refused(refused, fn):
    refused(fn, SIX.clone(), match=".")


def test_dlpack_in_a_closure(refused):
    function = to_dlpack
    refused(lambda x: x * float(np.from_dlpack(Capsule(function(x * 2)))[1]), SIX, match="'function' is torch.to_dlpack")


def test_dlpack_of_another_thread_does_not_refuse(livepool, same):
    def fn(x):
        thread = threading.Thread(target=lambda: torch.to_dlpack(SIX))
        thread.start()
        thread.join()
        return x * 2 + 1

    graph = livepool.capture(fn, SIX)
    same(graph.replay(OTHER), OTHER * 2 + 1)


def test_host_reads_are_back_afterwards(livepool):
    methods = {name: getattr(torch.Tensor, name) for name in ("tolist", "numpy", "data_ptr", "data", "__dlpack__")}
    livepool.capture(lambda x: x + 1, SIX)
    with pytest.raises(livepool.CaptureRefused):
        livepool.capture(lambda x: x * x.tolist()[0], SIX)
    assert all(getattr(torch.Tensor, name) is method for name, method in methods.items())
    assert "tolist" not in vars(torch.Tensor)
    assert torch.to_dlpack is torch.utils.dlpack.to_dlpack is to_dlpack


def test_own_files_and_printing_do_not_crash(livepool, same, capsys):
    """Printing in the pass is an effect of the capture; it reads values, so the capture may be refused, never wrong."""
    def fn(x):
        print(x * 2)
        return x + 1

    try:
        graph = livepool.capture(fn, SIX)
    except livepool.CaptureRefused:
        return
    for x in (OTHER, OTHER + 1):
        try:
            same(graph.replay(x), x + 1)
        except livepool.GuardFailed:
            pass


HOST_READING_KERNELS = {
    "packed sequence": lambda x, n: torch.nn.utils.rnn.pad_packed_sequence(
        torch.nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True), batch_first=True)[0] * 2,
    "tensor_split": lambda x, n: [t * 2 for t in x.tensor_split(n[1:3], dim=1)],
    "ctc_loss": lambda x, n: torch.nn.functional.ctc_loss(x.transpose(0, 1).log_softmax(-1), torch.ones(4, 2, dtype=torch.int64), n,
                                                         torch.tensor([1, 1, 1, 1])),
    "one_hot": lambda x, n: torch.nn.functional.one_hot(n) * 2,
    "split_with_sizes of tolist": lambda x, n: x.split([int(v) for v in n[:1]] + [3 - int(n[0])], 1),
    "embedding_bag": lambda x, n: torch.nn.functional.embedding_bag(n, x.view(12, 5), torch.tensor([0, 2])) * 2,
    "histogram": lambda x, n: torch.histogram(x, bins=4, range=(float(n[3]), 5.0)).hist,
}


@pytest.mark.parametrize("fn", HOST_READING_KERNELS.values(), ids=HOST_READING_KERNELS)
def test_kernels_that_read_on_the_host(livepool, same, fn):
    """Composite kernels that read a tensor through data_ptr would bake its values into the graph."""
    def inputs(seed, lengths):
        return torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(seed)), torch.tensor(lengths)

    try:
        graph = livepool.capture(fn, *inputs(0, [3, 2, 2, 1]))
    except livepool.CaptureRefused:
        return
    tried = 0
    for seed, lengths in enumerate(([3, 2, 2, 1], [3, 3, 1, 1], [3, 2, 1, 1], [3, 3, 2, 2], [2, 2, 2, 2]), 1):
        for _ in range(2):
            try:
                got = graph.replay(*inputs(seed, lengths))
            except livepool.GuardFailed:
                continue
            tried += 1
            same(got, fn(*inputs(seed, lengths)))
    assert tried > 0


def test_lstm_on_a_packed_sequence(livepool, same):
    lstm = torch.nn.LSTM(5, 3, batch_first=True).eval()

    def fn(x, n):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True)
        return lstm(packed)[1][0] * 2

    x = torch.randn(4, 3, 5)
    try:
        graph = livepool.capture(fn, x, torch.tensor([3, 2, 2, 1]))
    except livepool.CaptureRefused:
        return
    for lengths in ([3, 2, 2, 1], [3, 3, 1, 1], [3, 2, 1, 1]):
        for seed in (1, 2):
            try:
                got = graph.replay(x + seed, torch.tensor(lengths))
            except livepool.GuardFailed:
                continue
            same(got, fn(x + seed, torch.tensor(lengths)))
