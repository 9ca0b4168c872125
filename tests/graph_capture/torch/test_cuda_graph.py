"""mode="graph" on a GPU: the same bits as eager, in any order of launches, and op by op where no graph can be had."""

import gc
import random
import threading
import time

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

pytestmark = pytest.mark.gpu

FACTOR = {"value": 2}


@pytest.fixture
def cuda(livepool):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    livepool.install("cuda")
    yield livepool
    gc.collect()
    torch.cuda.synchronize()


@pytest.fixture
def equal(same):
    def compare(got, want, what="result"):
        on_host = [pytree.tree_map_only(torch.Tensor, lambda each: each.cpu(), tree) for tree in (got, want)]
        same(*on_host, what)

    return compare


def randn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).cuda()


def tokens(batch, length, seed=0):
    return torch.randint(1000, (batch, length), generator=torch.Generator().manual_seed(seed)).cuda()


def resnet():
    torchvision = pytest.importorskip("torchvision")
    return torchvision.models.resnet18(weights=None).eval().cuda(), lambda seed: (randn(2, 3, 64, 64, seed=seed),)


def bert():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)
    model = transformers.BertModel(config).eval().cuda()
    return lambda ids: model(ids).last_hidden_state, lambda seed: (tokens(2, 16, seed),)


def llama():
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(vocab_size=1000, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2, use_cache=False)
    model = transformers.LlamaModel(config).eval().cuda().half()
    return lambda ids: model(ids).last_hidden_state, lambda seed: (tokens(2, 16, seed),)


def mlp(width=64, rows=8):
    torch.manual_seed(width)
    model = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(), nn.Linear(4 * width, width), nn.LayerNorm(width))
    return model.eval().cuda(), lambda seed: (randn(rows, width, seed=seed),)


def launched(graph):
    """How many of its replays were launches; none may have been given up."""
    report = graph.report()
    assert report["not_launched"] == "", report["not_launched"]
    return report["launches"]


@pytest.mark.parametrize("make", [resnet, bert, llama, mlp])
@pytest.mark.parametrize("outputs", ["fresh", "arena"])
def test_models(cuda, equal, make, outputs):
    model, inputs = make()
    graph = cuda.capture(model, *inputs(0), mode="graph", outputs=outputs)
    for seed in (1, 2, 3, 1):
        equal(graph.replay(*inputs(seed)), model(*inputs(seed)), f"input {seed}")
    assert launched(graph) == 4 and graph.report()["checked"]
    assert graph.report()["graphs"] <= 2  # two if a better plan was found meanwhile


def test_random_numbers_go_on_as_in_eager(cuda, equal):
    def fn(x):
        return F.dropout(x, 0.3, training=True) + torch.randn_like(x), torch.rand(7, device="cuda")

    graph = cuda.capture(fn, randn(8, 8), mode="graph")

    def four(run):
        torch.cuda.manual_seed(5)
        results = [run(randn(8, 8, seed=seed)) for seed in range(1, 5)]
        return results, torch.randn(3, device="cuda"), torch.cuda.get_rng_state()

    four(graph.replay)  # the check is over
    equal(four(graph.replay), four(fn))
    assert launched(graph) >= 4


def test_models_and_shapes_in_any_order(cuda, equal):
    made = []
    for make in (resnet, lambda: mlp(64, 8), lambda: mlp(64, 100), lambda: mlp(32, 8)):
        model, inputs = make()
        made.append((model, inputs, cuda.capture(model, *inputs(0), mode="graph")))
    choice = random.Random(0)
    for step in range(50):
        model, inputs, graph = choice.choice(made)
        equal(graph.replay(*inputs(step)), model(*inputs(step)), f"step {step}")
    for _, _, graph in made:
        assert launched(graph) > 0


def test_other_streams(cuda, equal):
    """Nothing waits on the host: launches over one arena follow one another on the device."""
    model, inputs = mlp(256, 512)
    graphs = [cuda.capture(model, *inputs(0), mode="graph") for _ in range(2)]
    for graph in graphs:
        graph.replay(*inputs(1))  # checked
    given = [inputs(seed) for seed in range(40)]
    want = [model(*each) for each in given]
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    got = []
    for i, each in enumerate(given):
        with torch.cuda.stream(streams[i % 3]):
            got.append(graphs[i % 2].replay(*each))
    torch.cuda.synchronize()
    for i in range(40):
        equal(got[i], want[i], f"replay {i}")


def test_two_threads(cuda, equal):
    """One launches, the other finds the arena taken and runs the ops: both are right."""
    model, inputs = mlp(128, 256)
    graph = cuda.capture(model, *inputs(0), mode="graph")
    graph.replay(*inputs(1))
    wrong = []

    def work(offset):
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
            for seed in range(offset, offset + 40):
                each = inputs(seed)
                if not torch.equal(graph.replay(*each), model(*each)):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(offset,)) for offset in (100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and graph.report()["launches"] > 0


def test_an_argument_that_is_written_to_is_used_where_it_lies(cuda, equal):
    def fn(total, x):
        total.add_(x)
        return total * 2

    total, eager_total = torch.zeros(16, device="cuda"), torch.zeros(16, device="cuda")
    graph = cuda.capture(fn, total, randn(16), mode="graph")
    fn(eager_total, randn(16))
    for seed in range(1, 5):
        equal(graph.replay(total, randn(16, seed=seed)), fn(eager_total, randn(16, seed=seed)))
        equal(total, eager_total)
    before = launched(graph)
    other, eager_other = torch.ones(16, device="cuda"), torch.ones(16, device="cuda")
    equal(graph.replay(other, randn(16)), fn(eager_other, randn(16)))
    assert graph.report()["launches"] == before and "another place" in graph.report()["not_launched"]
    for seed in range(3):  # captured anew for it
        equal(graph.replay(other, randn(16, seed=seed)), fn(eager_other, randn(16, seed=seed)))
        equal(other, eager_other)
    assert graph.report()["graphs"] == 2 and graph.report()["launches"] == before + 3


class Cache(nn.Module):
    """A static cache of keys, as generation has it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(32, 16, device="cuda"))
        self.linear = nn.Linear(16, 16).cuda()

    def forward(self, x, position):
        self.keys.index_copy_(0, position, self.linear(x))
        return torch.softmax(x @ self.keys.t(), -1) @ self.keys


def test_a_static_cache(cuda, equal):
    torch.manual_seed(0)
    module, eager = Cache().eval(), Cache().eval()
    eager.load_state_dict(module.state_dict())
    position = torch.tensor([0], device="cuda")
    graph = cuda.capture(module, randn(1, 16), position, mode="graph")
    eager(randn(1, 16), position)
    for step in range(1, 20):
        position = torch.tensor([step], device="cuda")
        equal(graph.replay(randn(1, 16, seed=step), position), eager(randn(1, 16, seed=step), position))
    equal(module.keys, eager.keys)
    assert launched(graph) == 19
    module.keys = module.keys.clone()
    with pytest.raises(cuda.ReplayMismatch, match="keys"):
        graph.replay(randn(1, 16), position)


def reads_result(x):
    return x * 2 if x.sum().item() > -1e9 else x


def syncs_inside(x):
    return torch.index_put(x, (x > 0,), torch.ones((), device="cuda"), accumulate=True)


FALLBACKS = {
    "the host reads a result": (reads_result, "_local_scalar_dense"),
    "an output on the host": (lambda x: (x * 2).cpu(), "on the CPU"),
    "sizes that depend on data": (lambda x: x[x > -1e9] * 2, "aten::index"),
    "a tensor of the host in the middle": (lambda x: x + (x.cpu() * 2).cuda(), "on the CPU"),
    "an operator that waits inside": (syncs_inside, "CUDA cannot capture it"),
}


@pytest.mark.parametrize("case", FALLBACKS)
def test_a_pass_that_cannot_be_a_graph_is_replayed(cuda, equal, capfd, case):
    fn, says = FALLBACKS[case]
    graph = cuda.capture(fn, randn(8, 8), mode="graph")
    for seed in (1, 2):
        equal(graph.replay(randn(8, 8, seed=seed)), fn(randn(8, 8, seed=seed)))
    assert says in graph.report()["not_launched"] and graph.report()["launches"] == 0
    assert capfd.readouterr().err.count("not as a CUDA graph") == 1


def test_after_a_capture_that_failed_all_works(cuda, equal):
    """torch alone would be left with a generator that cannot draw, and with open pools."""
    cuda.capture(syncs_inside, randn(8, 8), mode="graph")
    torch.cuda.synchronize()
    torch.cuda.manual_seed(1)
    first = torch.randn(5, device="cuda")
    torch.cuda.manual_seed(1)
    equal(torch.randn(5, device="cuda"), first)
    model, inputs = mlp()
    graph = cuda.capture(lambda x: model(x) + torch.rand(64, device="cuda"), *inputs(0), mode="graph")
    graph.replay(*inputs(1))
    graph.replay(*inputs(2))
    assert launched(graph) == 2
    users = torch.cuda.CUDAGraph()
    x = torch.ones(8, device="cuda")
    with torch.cuda.graph(users):
        y = x * 3
    users.replay()
    equal(y, torch.full((8,), 3.0))
    torch.cuda.empty_cache()


def test_constants_are_no_obstacle(cuda, equal):
    def fn(x):
        mask = torch.arange(8, device="cuda")[:, None] >= torch.arange(8, device="cuda")
        if not mask.all():
            x = x.masked_fill(~mask, float("-inf"))
        return x.softmax(-1) * torch.tensor(2.0, device="cuda") + torch.tensor([1.0] * 8, device="cuda")

    graph = cuda.capture(fn, randn(8, 8), mode="graph")
    for seed in (1, 2):
        equal(graph.replay(randn(8, 8, seed=seed)), fn(randn(8, 8, seed=seed)))
    assert launched(graph) == 2


def same_bytes_each_time(livepool):
    graph = livepool.capture(lambda x: x * 2, randn(64), mode="graph", outputs="arena")
    graph.replay(randn(64, seed=1))
    a = graph.replay(randn(64, seed=2))
    b = graph.replay(randn(64, seed=3))
    assert a.data_ptr() == b.data_ptr()
    assert torch.equal(a, randn(64, seed=3) * 2)


def test_outputs_in_the_arena_are_the_same_bytes_each_time(cuda, unpoisoned):
    unpoisoned(same_bytes_each_time, "cuda")


def test_an_output_in_the_arena_may_be_an_argument(cuda, equal):
    """The pass overwrites these bytes: the argument is copied out of the arena first."""
    def fn(x):
        return (x * 2).cumsum(0).flip(0) + x.sort().values

    for mode in ("graph", "replay"):
        producer = cuda.capture(fn, randn(4096), mode="graph", outputs="arena")
        consumer = cuda.capture(fn, randn(4096), mode=mode)
        for seed in (1, 2, 3):
            equal(consumer.replay(producer.replay(randn(4096, seed=seed))), fn(fn(randn(4096, seed=seed))))


def test_the_check_holds_for_launches(cuda):
    graph = cuda.capture(lambda x: x * FACTOR["value"], randn(8), mode="graph")
    FACTOR["value"] = 3
    try:
        with pytest.raises(cuda.CheckFailed, match="differs from eager"):
            graph.replay(randn(8, seed=1))
    finally:
        FACTOR["value"] = 2


def test_a_graph_pins_the_arena_while_it_lives(cuda):
    gc.collect()
    cuda.trim()
    model, inputs = mlp(256, 1024)
    graph = cuda.capture(model, *inputs(0), mode="graph")
    with pytest.raises(cuda.ArenaInUse, match="Drop the graph first"):
        cuda.trim()
    torch.cuda.empty_cache()  # goes around it
    graph.replay(*inputs(1))
    assert launched(graph) == 1
    del graph
    gc.collect()
    assert cuda.trim() > 0
    assert cuda.stats()["arena_bytes_of"]["cuda:0"] == 0


def test_many_shapes_hold_the_memory_of_the_largest(cuda):
    gc.collect()
    cuda.trim()
    model, _ = mlp(256)
    rows = [64, 2048, 512, 4096, 1024, 128]
    graphs = {n: cuda.capture(model, randn(n, 256), mode="graph") for n in rows}

    def round_of_all():
        for n in rows:
            for seed in range(3):
                graphs[n].replay(randn(n, 256, seed=seed))
        torch.cuda.synchronize()
        return cuda.stats()["arena_bytes_of"]["cuda:0"], torch.cuda.memory_reserved()

    round_of_all()  # checked
    first = round_of_all()
    for _ in range(3):
        assert round_of_all() == first
    assert all(launched(graph) for graph in graphs.values())
    largest = max(graph.report()["arena_bytes"] for graph in graphs.values())
    assert first[0] < largest + (4 << 20)  # whole pages; and what earlier tests have left is no more


def test_launches_are_faster_than_the_replay(cuda):
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(60)]).eval().cuda()
    x = randn(4, 64)

    def milliseconds(mode):
        graph = cuda.capture(model, x, mode=mode)
        for seed in range(20):
            graph.replay(randn(4, 64, seed=seed))
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            graph.replay(x)
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 5

    assert milliseconds("graph") < 0.8 * milliseconds("replay")


def test_inside_the_users_own_capture_the_ops_are_captured(cuda, equal):
    model, inputs = mlp()
    graph = cuda.capture(model, *inputs(0), mode="graph")
    graph.replay(*inputs(1))
    x, = inputs(2)
    users = torch.cuda.CUDAGraph()
    with torch.cuda.graph(users):
        y = graph.replay(x)
    x.copy_(inputs(3)[0])
    users.replay()
    equal(y, model(*inputs(3)))


def test_a_wrapped_module_launches_graphs(cuda, equal):
    model, inputs = resnet()
    with torch.inference_mode():
        want = [model(*inputs(seed)) for seed in range(5)]
        cuda.wrap(model, capture_after=1, mode="graph")
        for seed, expected in enumerate(want):
            equal(model(*inputs(seed)), expected)
        (signature,) = cuda.explain(model).signatures
    assert signature.graph["not_launched"] == "" and signature.graph["launches"] >= 2
