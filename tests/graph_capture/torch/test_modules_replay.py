"""Networks and operators of the usual kinds, replayed bit for bit."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(8, 16), nn.Linear(16, 8), nn.LayerNorm(8)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(self.norm(x))))


MODULES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 8), nn.Dropout(0.5)), (4, 8)),
    "residual": (lambda: nn.Sequential(*[Residual() for _ in range(3)]), (2, 5, 8)),
    "lstm": (lambda: nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True), (2, 3, 8)),
    "lstm with projection": (lambda: nn.LSTM(8, 6, proj_size=3), (3, 2, 8)),
    "gru": (lambda: nn.GRU(8, 6, num_layers=2), (3, 2, 8)),
    "rnn": (lambda: nn.RNN(8, 6, nonlinearity="relu"), (3, 2, 8)),
    "lstm cell": (lambda: nn.LSTMCell(8, 6), (3, 8)),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8)),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2), (2, 5, 8)),
    "encoder, norm first": (lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu"), 2, enable_nested_tensor=False), (2, 5, 8)),
    "conv net": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(True), nn.MaxPool2d(2),
                                       nn.Conv2d(4, 8, 3, groups=2), nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                       nn.Linear(8, 5), nn.LogSoftmax(-1)), (2, 3, 8, 8)),
    "transposed conv": (lambda: nn.Sequential(nn.ConvTranspose2d(3, 4, 2, stride=2), nn.InstanceNorm2d(4), nn.Upsample(scale_factor=2),
                                              nn.PixelShuffle(2)), (1, 3, 4, 4)),
    "conv1d and conv3d": (lambda: nn.Sequential(nn.Conv1d(3, 4, 3), nn.Unflatten(2, (2, 2, 2)), nn.Conv3d(4, 2, 2)), (1, 3, 10)),
    "batch norm": (lambda: nn.BatchNorm1d(8), (4, 8)),
    "bilinear": (lambda: nn.Bilinear(8, 8, 4), None),
    "returns its input": (lambda: nn.Identity(), (2, 3)),
    "eval dropout": (lambda: nn.Sequential(nn.Dropout(), nn.Dropout(inplace=True)), (2, 3)),
}


@pytest.mark.parametrize("make, shape", MODULES.values(), ids=MODULES)
def test_module(check, normal, make, shape):
    torch.manual_seed(4)
    module = make().eval()
    inputs = normal(shape) if shape else normal((4, 8), (4, 8))
    graph = check(module, inputs, hits=False)
    assert graph.report()["hits"] > 0 or graph.report()["arena_bytes"] == 0


def test_multihead_attention_keeps_its_fast_path(check, normal):
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()

    def fn(x):
        return attention(x, x, x, need_weights=False)[0] * 2

    with torch.profiler.profile() as profile:
        fn(*normal((2, 5, 8))(0))
    assert any(event.key == "aten::_native_multi_head_attention" for event in profile.key_averages())
    graph = check(fn, normal((2, 5, 8)))
    assert graph.report()["ops"] == 2


def test_multihead_attention_with_masks(check, normal):
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    mask = torch.zeros(5, 5).fill_(float("-inf")).triu(1)
    check(lambda x: attention(x, x, x, attn_mask=mask, is_causal=True), normal((2, 5, 8)))
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    check(lambda x: attention(x * 1.0, x, x + 1, key_padding_mask=padding), normal((2, 5, 8)))


def test_encoder_with_padding_is_right_or_refused(check, livepool, normal):
    """The fast path makes nested tensors here."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check(lambda x: encoder(x, src_key_padding_mask=padding), normal((2, 5, 8)), misses=True)
        except livepool.CaptureRefused as refusal:
            assert "nested" in str(refusal)


def ids(seed: int) -> tuple:
    return (torch.randint(0, 10, (2, 5), generator=torch.Generator().manual_seed(seed)),)


def test_embeddings(check):
    table, bag = nn.Embedding(10, 6, padding_idx=0).eval(), nn.EmbeddingBag(10, 6).eval()
    check(lambda i: table(i) * 2 + bag(i)[:, None], ids)
    check(lambda i: F.embedding(i, table.weight, max_norm=None).sum(1) * 2, ids)


def test_embedding_with_max_norm_writes_its_weight(livepool, same):
    """embedding_renorm_ changes the weight, which eager must see as well."""
    replayed, eager = (nn.Embedding(10, 6, max_norm=0.5).eval() for _ in range(2))
    eager.load_state_dict(replayed.state_dict())
    graph = livepool.capture(replayed, *ids(0))
    eager(*ids(0))
    same(replayed.weight.data, eager.weight.data)
    for seed in (1, 2, 3):
        same(graph.replay(*ids(seed)), eager(*ids(seed)))
        same(replayed.weight.data, eager.weight.data)


OPS = {
    "einsum": lambda x: torch.einsum("ij,jk->ki", x * 2, x) + torch.einsum("ii->i", x),
    "scatter": lambda x: torch.zeros(4, 4).scatter(0, x.argsort(0), x * 2) + x.scatter_add(1, x.argsort(1), x),
    "scatter_reduce": lambda x: x.scatter_reduce(0, x.argsort(0), x, "amax") * 2,
    "gather": lambda x: (x * 2).gather(1, x.argsort(1)) + 1,
    "index_put": lambda x: (x * 2).index_put((torch.tensor([0, 2]),), torch.tensor(5.0), accumulate=True) + 1,
    "index_put_ by mask": lambda x: (lambda y: (y.__setitem__(y > 0, 0.5), y * 2)[1])(x * 2),
    "index_add and index_copy": lambda x: x.index_add(0, torch.tensor([1, 1]), x[:2]).index_copy(0, torch.tensor([3]), x[:1]) * 2,
    "masked_fill": lambda x: (x * 2).masked_fill(x > 0, float("-inf")).softmax(-1),
    "masked_scatter": lambda x: (x * 2).masked_scatter(x > 0, x.flip(0)) + 1,
    "sort": lambda x: [t * 2 for t in (x * 2).sort(dim=1, descending=True)],
    "topk and kthvalue": lambda x: [*(x * 2).topk(2), *(x * 2).kthvalue(2)],
    "argmax, cumsum, logsumexp": lambda x: (x.argmax(1) * 2, x.cumsum(0) + 1, (x * 2).logsumexp(0)),
    "nan, inf, signed zero": lambda x: (x / 0 * 0, (x * 0) * -1, (x - x) / (x - x)),
    "complex": lambda x: torch.fft.ifft(torch.fft.fft(x * 2).conj() * 1j).real + torch.polar(x.abs(), x).angle(),
    "rfft and stft": lambda x: (torch.fft.irfft(torch.fft.rfft(x * 2)), torch.stft(x.view(-1) * 2, 8, return_complex=True,
                                                                                  window=torch.hann_window(8)).abs()),
    "linear algebra": lambda x: torch.linalg.solve(x @ x.mT + torch.eye(4) * 5, x) + torch.linalg.norm(x),
    "cholesky and qr": lambda x: (torch.linalg.cholesky(x @ x.mT + torch.eye(4) * 5) * 2, torch.linalg.qr(x * 2).R),
    "norms": lambda x: F.layer_norm(x * 2, (4,)) + F.rms_norm(x, (4,)) + F.normalize(x),
    "losses": lambda x: F.cross_entropy(x * 2, torch.tensor([0, 1, 2, 3])) + F.mse_loss(x, x.t()) + F.kl_div(x.log_softmax(0), x.softmax(0)),
    "interpolate and grid_sample": lambda x: F.grid_sample(F.interpolate((x * 2)[None, None], scale_factor=2.0, mode="bilinear"),
                                                           torch.zeros(1, 3, 3, 2) + 0.1, align_corners=False),
    "pad, roll, flip": lambda x: F.pad((x * 2)[None], (1, 1), mode="reflect").roll(1, -1).flip(1),
    "unfold and fold": lambda x: F.fold(F.unfold((x * 2)[None, None], 2), (4, 4), 2),
    "half precision": lambda x: (x.half() * 2 + 1).float() + (x.bfloat16() @ x.bfloat16()).float(),
    "integers": lambda x: ((x * 10).long() // 3 % 4) ^ 5,
    "quantile, median, mode": lambda x: (x.quantile(0.3) * 2, x.median(0).values + 1, (x * 2).round().mode().values),
    "searchsorted and bucketize": lambda x: torch.searchsorted(x.sort(1).values, x) + torch.bucketize(x, torch.tensor([0.0, 1])),
    "attention": lambda x: F.scaled_dot_product_attention(*[(x * 2).view(1, 1, 4, 4)] * 3, is_causal=True),
    "attention with mask": lambda x: F.scaled_dot_product_attention(*[(x * 2).view(1, 1, 4, 4)] * 3, attn_mask=(x > 0)[None, None]),
    "meshgrid, tril, outer": lambda x: [t * 2 for t in torch.meshgrid(x[0], x[1], indexing="ij")] + [x.tril() + torch.outer(x[0], x[1])],
    "cdist, cov, corrcoef": lambda x: torch.cdist(x, x * 2) + torch.cov(x) + torch.corrcoef(x),
    "lerp_, addcdiv_, clamp_": lambda x: (x * 2).lerp_(x, 0.5).addcdiv_(x, x.abs() + 1).clamp_(-1, 1),
    "unique consecutive of constants": lambda x: torch.unique_consecutive(torch.tensor([1, 1, 2])) + x[0, 0],
    "repeat and tile": lambda x: x.repeat(2, 1) * 2 + x.tile(2, 1) + x.repeat_interleave(2, 0),
    "matmuls": lambda x: torch.baddbmm(x[None], x[None] * 2, x[None]) + torch.addmv(x[0], x, x[1]) + torch.mv(x, x[0]).dot(x[1]),
    "weight_norm": lambda x: torch._weight_norm(x * 2, x[:, :1].abs() + 1, 0),
    "rot90, diff, trapezoid": lambda x: (torch.rot90(x * 2) + 1, x.diff() * 2, torch.trapezoid(x) + 1),
    "special functions": lambda x: torch.special.erfcx(x) + torch.lgamma(x.abs() + 1) + torch.sinc(x) + torch.special.i0(x),
}


@pytest.mark.parametrize("fn", OPS.values(), ids=OPS)
def test_operators(check, normal, fn):
    check(fn, normal((4, 4)), hits=False, misses=True)


class TestTorchScript:
    @pytest.fixture(autouse=True)
    def _without_fusers(self):
        before = torch._C._jit_texpr_fuser_enabled()
        torch._C._jit_set_texpr_fuser_enabled(False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
        torch._C._jit_set_texpr_fuser_enabled(before)

    def test_scripted_module(self, check, normal):
        check(torch.jit.script(Residual().eval()), normal((2, 8)))

    def test_traced_module(self, check, normal):
        check(torch.jit.trace(Residual().eval(), normal((2, 8))(0)), normal((2, 8)))

    def test_frozen_module(self, check, normal):
        frozen = torch.jit.freeze(torch.jit.script(Residual().eval()))
        check(frozen, normal((2, 8)))

    def test_traced_constants(self, check, normal):
        table = torch.arange(4.0)
        traced = torch.jit.trace(lambda x: x * table + table, normal((4,))(0))
        for _ in range(3):  # the executor compares constants while it optimises
            traced(*normal((4,))(0))
        check(traced, normal((4,)))

    def test_constants_that_the_executor_folds(self, check, livepool, normal):
        """They are tensors of the executor's own, which nothing outside it can reach."""
        traced = torch.jit.trace(lambda x: x * torch.arange(4.0) + torch.tensor([1.0, 2, 3, 4]), normal((4,))(0))
        for _ in range(3):
            traced(*normal((4,))(0))
        try:
            check(traced, normal((4,)))
        except livepool.CaptureRefused as refusal:
            assert "hidden input" in str(refusal)

    def test_scripted_function(self, check, normal):
        @torch.jit.script
        def fn(x: torch.Tensor, y: torch.Tensor):
            return torch.tanh(x @ y) * 2 + x.sum()

        check(lambda x, y: fn(x, y) + 1, normal((4, 4), (4, 4)))

    def test_control_flow(self, livepool, normal, same):
        @torch.jit.script
        def fn(x: torch.Tensor):
            if bool(x.sum() > 0):
                x = x * 2
            for i in range(3):
                x = x + float(i)
            return x

        graph = livepool.capture(lambda x: fn(x) * 2, torch.ones(4))
        for x in (torch.ones(4) * 2, torch.ones(4) * 3):
            same(graph.replay(x), fn(x) * 2)
        with pytest.raises(livepool.GuardFailed):
            graph.replay(-torch.ones(4))

    def test_fusers_on_are_refused(self, livepool, normal):
        torch._C._jit_set_texpr_fuser_enabled(True)
        before = torch._C._jit_can_fuse_on_cpu()
        torch._C._jit_override_can_fuse_on_cpu(True)
        try:
            with pytest.raises(livepool.CaptureRefused, match="fuse"):
                livepool.capture(torch.jit.script(Residual().eval()), *normal((2, 8))(0))
        finally:
            torch._C._jit_override_can_fuse_on_cpu(before)
