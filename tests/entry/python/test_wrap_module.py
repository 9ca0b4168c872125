"""A wrapped module is still the module: attributes, copies, pickles, hooks, the way back."""

import copy
import gc
import inspect
import io
import pickle
import weakref

import pytest
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 4)
        self.scale = 2.0

    def forward(self, x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
        """Doc."""
        return self.b(torch.relu(self.a(x))) * self.scale + shift


X = torch.arange(12.0).view(3, 4) / 10


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


def _replays(livepool, module) -> int:
    return livepool.explain(module).replayed


def _warm(module):
    for i in range(3):
        module(X + i)
    return module


def test_type_attributes_and_signature_stay(livepool, net):
    before = inspect.signature(net.forward)
    names, state = set(dir(net)), list(net.state_dict())
    children = [name for name, _ in net.named_modules()]
    assert livepool.wrap(net) is net
    assert type(net) is Net and isinstance(net, nn.Module)
    assert inspect.signature(net.forward) == before
    assert (net.forward.__name__, net.forward.__wrapped__.__doc__) == ("forward", "Doc.")
    assert set(dir(net)) | {"__getstate__"} == names | {"__getstate__"}
    assert list(net.state_dict()) == state and [name for name, _ in net.named_modules()] == children
    assert net.scale == 2.0 and str(net) == str(Net())


def test_the_way_back(livepool, net, same):
    before = dict(vars(net))
    want = net(X)
    livepool.unwrap(_warm(livepool.wrap(net)))
    assert vars(net) == before and net.forward.__func__ is Net.forward
    same(net(X), want)
    assert livepool.unwrap(net) is net  # nothing to do
    with pytest.raises(livepool.InvalidInput, match="not wrapped"):
        livepool.explain(net)


def test_a_forward_of_the_instance_is_kept(livepool, net, same):
    def own(x):
        return Net.forward(net, x) + 1

    net.forward = own
    want = net(X)
    _warm(livepool.wrap(net))
    same(net(X), want)
    assert _replays(livepool, net) == 2
    assert copy.copy(net).forward is own
    assert livepool.unwrap(net).forward is own


def test_what_a_forward_of_the_instance_owns_is_watched(livepool, net, same):
    factor = torch.full((4,), 2.0)

    def make(number):
        return lambda x: Net.forward(net, x) * factor + number

    net.forward = make(1)
    plain = net.forward
    _warm(livepool.wrap(net))
    for i in range(3):
        same(net(X + i), plain(X + i))
        factor.add_(1)
    assert _replays(livepool, net) == 4
    graph = livepool.capture(net, X)  # the larger capture sees it, too
    same(graph.replay(X + 1), plain(X + 1))
    plain.__closure__[plain.__code__.co_freevars.index("number")].cell_contents = 7
    for i in range(3):
        same(net(X + i), plain(X + i))
    with pytest.raises(livepool.ReplayMismatch, match="number"):
        graph.replay(X)


def test_a_forward_that_is_set_later_is_not_lost(livepool, net, same):
    _warm(livepool.wrap(net))
    inner = net.forward
    net.forward = lambda x: inner(x) + 1
    same(net(X), Net.forward(net, X) + 1)
    with pytest.raises(livepool.InvalidInput, match="set after wrap"):
        livepool.unwrap(net)
    net.forward = inner
    livepool.unwrap(net)


def test_wrapping_twice_is_wrapping_anew(livepool, net):
    _warm(livepool.wrap(net))
    livepool.wrap(net, max_graphs=3, capture_after=1)
    assert livepool.explain(net).signatures == [] and livepool.explain(net).max_graphs == 3
    assert livepool.unwrap(net).forward.__func__ is Net.forward


@pytest.mark.parametrize("options", [{"max_graphs": 0}, {"capture_after": -1}, {"capture_after": 1.5}, {"mode": "fast"}, {"outputs": 3}])
def test_bad_options(livepool, net, options):
    with pytest.raises(livepool.InvalidInput, match=next(iter(options))):
        livepool.wrap(net, **options)
    with pytest.raises(livepool.InvalidInput, match="torch.nn.Module"):
        livepool.wrap(lambda x: x)


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "inside another": lambda module: copy.deepcopy(nn.Sequential(module))[0],
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_copies_are_unwrapped_and_share_no_graph(livepool, net, same, make):
    _warm(livepool.wrap(net))
    twin = make(net)
    assert "forward" not in vars(twin) and "__getstate__" not in vars(twin) and type(twin) is Net
    twin.scale = 5.0
    same(twin(X), Net.forward(twin, X))
    replays = _replays(livepool, net)
    same(net(X), Net.forward(net, X))
    assert _replays(livepool, net) == replays + 1


def test_torch_save(livepool, net, same):
    plain, wrapped = io.BytesIO(), io.BytesIO()
    torch.save(net, plain)
    torch.save(_warm(livepool.wrap(net)), wrapped)
    assert b"livepool" not in wrapped.getvalue()  # it can be loaded where livepool is not
    wrapped.seek(0)
    same(torch.load(wrapped, weights_only=False)(X), Net.forward(net, X))


def test_forward_alone_is_copied_with_its_module(livepool, net, same):
    _warm(livepool.wrap(net))
    for twin in (copy.deepcopy(net.forward), pickle.loads(pickle.dumps(net.forward))):
        assert twin.__self__ is not net
        same(twin(X), Net.forward(net, X))


def test_copying_the_attributes_themselves_wraps_anew(livepool, net, same):
    """As torch.fx.GraphModule.__deepcopy__ does."""
    _warm(livepool.wrap(net))
    twin = Net.__new__(Net)
    vars(twin).update(copy.deepcopy(vars(net), {id(net): twin}))
    assert livepool.explain(twin).signatures == []
    twin.scale = 3.0
    for x in (X, X + 1, X + 2):
        same(twin(x), Net.forward(twin, x))
    assert _replays(livepool, twin) == 1 and _replays(livepool, net) == 1
    assert livepool.unwrap(twin).forward.__self__ is twin


def test_a_graph_module(livepool, net, same):
    traced = torch.fx.symbolic_trace(net)
    _warm(livepool.wrap(traced))
    twin = copy.deepcopy(traced)
    same(twin(X), net(X))
    same(traced(X), net(X))
    assert _replays(livepool, traced) == 2


def test_its_class_may_have_a_getstate(livepool, same):
    class Stateful(Net):
        def __getstate__(self):
            state = self.__dict__.copy()
            state["scale"] = 7.0
            return state

    module = _warm(livepool.wrap(Stateful().eval()))
    twin = copy.deepcopy(module)
    assert twin.scale == 7.0 and module.scale == 2.0 and "forward" not in vars(twin)


def test_its_memory_goes_with_it(livepool, net):
    """At once, though the graphs refer to its parameters: nothing waits for the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        weight = weakref.ref(_warm(livepool.wrap(net)).a.weight)
        forward = net.forward
        del net
        # The fixture holds the module; a second one is ours alone.
        module = _warm(livepool.wrap(Net().eval()))
        other = weakref.ref(module.a.weight)
        held = module.forward
        del module
        assert other() is None and weight() is not None
        with pytest.raises(ReferenceError, match="gone"):
            held(X)
        assert forward.module.scale == 2.0
    finally:
        gc.enable()


def test_a_cycle_through_the_module_is_collected(livepool):
    module = Net().eval()
    module.a.parent = [module]
    weight = weakref.ref(_warm(livepool.wrap(module)).a.weight)
    del module
    gc.collect()
    assert weight() is None


def test_hooks_of_the_module_itself_run(livepool, net, same):
    seen = []
    livepool.wrap(net)
    net.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    net.register_forward_hook(lambda module, args, output: seen.append(args[0]) or output * 2)
    for i in range(4):
        same(net(X + i), Net.forward(net, X + i + 1) * 2)
    assert len(seen) == 4 and _replays(livepool, net) == 2


def test_hooks_that_are_added_later(livepool, net, same):
    _warm(livepool.wrap(net, capture_after=1))
    handle = net.a.register_forward_hook(lambda module, args, output: output + 1)
    for i in range(5):
        same(net(X + i), Net.forward(net, X + i))
    assert livepool.explain(net).signatures[0].captures == 2
    handle.remove()
    for i in range(8):
        same(net(X + i), Net.forward(net, X + i))
    assert livepool.explain(net).signatures[0].captures == 3


def test_a_wrapped_submodule(livepool, same):
    outer = nn.Sequential(Net(), Net()).eval()
    want = [outer(X + i) for i in range(4)]
    livepool.wrap(outer[0], capture_after=1)
    for i in range(4):
        same(outer(X + i), want[i])
    assert _replays(livepool, outer[0]) == 3
    # A capture of the larger module has the inner one run as it is, and holds its operators.
    livepool.wrap(outer, capture_after=1)
    for i in range(4):
        same(outer(X + i), want[i])
    assert _replays(livepool, outer) == 3 and _replays(livepool, outer[0]) == 3
    assert livepool.explain(outer).signatures[0].graph["ops"] == 2 * livepool.explain(outer[0]).signatures[0].graph["ops"]


def test_a_torchscript_module(livepool, net, same):
    before = torch._C._jit_texpr_fuser_enabled()
    torch._C._jit_set_texpr_fuser_enabled(False)
    try:
        scripted = torch.jit.script(net)
        livepool.wrap(scripted)
        for i in range(5):
            same(scripted(X + i), net(X + i))
        assert _replays(livepool, scripted) == 3
        same(copy.deepcopy(scripted)(X), net(X))
        livepool.unwrap(scripted)
        same(scripted(X), net(X))
    finally:
        torch._C._jit_set_texpr_fuser_enabled(before)


def test_torch_compile_and_trace_see_the_module_itself(livepool, net, same):
    livepool.wrap(net, capture_after=1)
    same(torch.jit.trace(net, X)(X + 1), Net.forward(net, X + 1))
    same(torch.compile(net, backend="eager")(X), Net.forward(net, X))
    same(torch.export.export(net, (X,)).module()(X), Net.forward(net, X))
