"""The parts of `livepool bench`, one by one, from the folder of the sources: they need no compiled module."""

import importlib
import io
import json
import math
import sys

import pytest
import torch

import bench_standin


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    """part("compare") is the module livepool.bench.compare, imported beside a stand-in for the compiled module."""
    folder = bench_standin.lay(tmp_path_factory.mktemp("standin"))
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "livepool"}
    for name in kept:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    yield lambda name: importlib.import_module(f"livepool.bench.{name}")
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.split(".")[0] == "livepool"]:
        del sys.modules[name]
    sys.modules.update(kept)


NAN = float("nan")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_floats_are_compared_as_bits(part, dtype):
    compare = part("compare").compare
    value = torch.tensor([1.0, -2.0, NAN, math.inf], dtype=dtype)
    assert compare(value, value.clone()).equal
    zero = torch.zeros(3, dtype=dtype)
    difference = compare(zero, -zero)
    assert not difference.equal and difference.max_abs == 0.0, "-0.0 is not 0.0"
    other = value.clone()
    other[0] = 1.5
    difference = compare(value, other)
    assert not difference.equal and difference.max_abs == 0.5
    assert difference.reason.startswith("1 of 4 elements differ")


def test_a_nan_equals_any_nan(part):
    one, other = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32).view(torch.float32)
    assert part("compare").compare(one, other).equal


@pytest.mark.parametrize("other", [NAN, math.inf])
def test_a_number_is_no_nan_and_no_infinity(part, other):
    difference = part("compare").compare(torch.tensor([1.0, 2.0]), torch.tensor([1.5, other]))
    assert not difference.equal and difference.max_abs is None


def test_one_bit_is_seen(part):
    value = torch.randn(1000, generator=torch.Generator().manual_seed(3))
    other = value.clone()
    other.view(torch.int32)[777] ^= 1
    assert not part("compare").compare(value, other).equal


@pytest.mark.parametrize(("one", "other"), [
    (torch.zeros(2), torch.zeros(2, dtype=torch.float16)),
    (torch.zeros(2), torch.zeros(2, 1)),
    (torch.zeros(2), torch.zeros(3)),
    (torch.zeros(2), 0.0),
    ([torch.zeros(2)], [torch.zeros(2), torch.zeros(2)]),
    ({"a": torch.zeros(2)}, {"b": torch.zeros(2)}),
    ([torch.zeros(2)], (torch.zeros(2),)),
    ((torch.zeros(2), 1), (torch.zeros(2), True)),
    ((torch.zeros(2), 1), (torch.zeros(2), 2)),
])
def test_other_kinds_of_results_differ(part, one, other):
    difference = part("compare").compare(one, other)
    assert not difference.equal and difference.max_abs is None and difference.reason


@pytest.mark.parametrize("value", [
    torch.tensor(3.0), torch.zeros(0), torch.tensor([True, False]), torch.arange(5), torch.zeros(2, 3).t(),
    torch.tensor([1 + 2j]).conj(), [torch.ones(2), {"x": torch.ones(1)}, 5, "text", None],
])
def test_kinds_of_results_that_equal_themselves(part, value):
    assert part("compare").compare(value, value).equal


def test_every_leaf_counts_and_the_worst_is_told(part):
    one = [torch.zeros(2), torch.zeros(2), torch.zeros(2)]
    other = [torch.zeros(2), torch.tensor([0.0, 3.0]), torch.tensor([1.0, 0.0])]
    assert part("compare").compare(one, other).max_abs == 3.0
    compare = part("compare")
    unequal, zero = compare.Difference(False, None, "x"), compare.Difference(False, 0.0, "y")
    assert compare.worst([compare.Difference(True), zero, unequal]) is unequal
    assert compare.worst([compare.Difference(True), zero]) is zero


DEFAULTS = ("resnet50", "vit_b_16", "convnext_tiny", "swin_t", "bert", "llama")


def test_default_models(part):
    assert part("options").DEFAULT_MODELS == DEFAULTS


@pytest.mark.parametrize("name", DEFAULTS + ("mobilenet_v2", "gpt2", "t5", "mixtral", "lstm", "unet"))
def test_models_are_repeatable_and_their_output_depends_on_the_input(part, name):
    models, compare = part("models"), part("compare")
    one, same = (models.build(name, "cpu", "fp32", 2) for _ in range(2))
    with torch.no_grad():
        first, again, second = one.model(**one.inputs(1)), same.model(**same.inputs(1)), one.model(**one.inputs(2))
    assert not one.model.training and compare.all_finite(first)
    assert compare.compare(first, again).equal
    assert compare.compare(first, second).max_abs > 1e-2, "a difference that half precision shows, too"


@pytest.mark.parametrize(("name", "shape"), [
    ("llama", (2, 128)), ("llama@3", (3, 128)), ("llama@3x16", (3, 16)), ("gru@5x7", (5, 7, 128)),
    ("resnet18@3", (3, 3, 224, 224)), ("r3d_18", (2, 3, 16, 224, 224)),
])
def test_a_name_may_say_batch_and_length(part, name, shape):
    work = part("models").build(name, "cpu", "fp32", 2)
    (value,) = work.inputs(0).values()
    assert tuple(value.shape) == shape and work.batch == shape[0]


@pytest.mark.parametrize("name", ["llama@", "llama@0", "llama@3x", "llama@x3", "llama@3x4x5", "@3", ""])
def test_other_names_are_refused(part, name):
    models = part("models")
    with pytest.raises(models.UnknownModel, match="is no name of a model; examples"):
        models.check_name(name)


def test_models_of_sets_exist_and_are_expanded_in_order(part):
    sets, models = part("model_sets"), part("models")
    for name in sets.expand(sets.SETS):
        models.check_name(name)
    assert sets.expand(["gru", "baseline", "bert@32x128"]) == ("gru", *sets.SETS["baseline"])
    assert len(sets.SETS["zoo"]) >= 40 and len(sets.SETS["baseline"]) == 14


def test_floats_are_cast_and_tokens_are_not(part):
    models = part("models")
    assert models.build("gru", "cpu", "bf16", 1).inputs(0)["steps"].dtype == torch.bfloat16
    assert models.build("llama@1x4", "cpu", "bf16", 1).inputs(0)["input_ids"].dtype == torch.int64


def test_weights_are_counted_once_by_storage(part):
    model = torch.nn.Sequential(torch.nn.Linear(8, 4, bias=False), torch.nn.Linear(8, 4, bias=False))
    model[1].weight = model[0].weight
    model.register_buffer("state", torch.zeros(10))
    assert part("models").weights_bytes(model) == 4 * 32 + 4 * 10


def fake_results(part, **changes):
    Result = part("result").Result
    right = Result("resnet50", 32, "fp16", 100, 1869 << 20, 171 << 20, 171 << 20, 171 << 20, 240 << 20, 180 << 20,
                   8.04, 4.81, True, 0.0, 242, 1)
    return [right, Result("vit_l_16", 32, "fp16", **changes)]


def shown(part, device, results):
    out = io.StringIO()
    part("table").show(device, results, file=out)
    return out.getvalue()


def test_table_on_cuda(part):
    text = shown(part, "cuda", fake_results(part, bitwise_equal=False, max_abs_diff=0.25, problem="replay differs"))
    row = next(line for line in text.splitlines() if line.strip().startswith("resnet50"))
    assert row.split() == ["resnet50", "1869.0", "171.0", "171.0", "171.0", "240.0", "180.0", "8.04", "4.81", "equal",
                           "242", "1"]
    assert "off by 0.25" in text and "vit_l_16: replay differs" in text
    assert "native" in text and "…" not in text


def test_table_on_the_cpu_has_no_held_columns(part):
    text = shown(part, "cpu", fake_results(part, problem="Error: x [not markup] y"))
    assert "native" not in text and "failed" in text
    assert "vit_l_16: Error: x [not markup] y" in text


def test_json_has_null_where_nothing_applies(part):
    right, failed = (json.loads(json.dumps(each.as_json())) for each in fake_results(part, problem="Error: x"))
    assert right["native_held_bytes"] == 240 << 20
    assert set(failed.values()) == {"vit_l_16", 32, "fp16", "", None} and "problem" not in failed


def test_only_an_equal_result_without_a_problem_is_right(part):
    right, failed = fake_results(part, problem="Error: x")
    assert right.right and not failed.right
    right.problem = "held memory: out of memory"
    assert not right.right


def test_one_line_of_an_error(part):
    one_line = part("result").one_line
    assert one_line(ValueError("\n  first\nsecond")) == "ValueError: first"
    assert one_line(KeyError()) == "KeyError"


def test_times_are_medians_of_runs_in_turn(part):
    order = []
    times = part("timing").interleaved_ms([lambda: order.append("a"), lambda: order.append("b")], "cpu")
    assert len(times) == 2 and all(0 <= time < 100 for time in times)
    assert order == ["a", "b"] * (len(order) // 2) and len(order) > 2 * part("timing").FEWEST


@pytest.mark.parametrize(("driver", "ours", "warns"), [
    (100 << 20, 100 << 20, False), (100 << 20, 109 << 20, False), (100 << 20, 111 << 20, True),
    (100 << 20, 89 << 20, True), (1 << 20, 3 << 20, False), (-50 << 20, 50 << 20, True),
])
def test_the_driver_may_be_ten_percent_off(part, driver, ours, warns):
    figures = {"model": "m", "mode": "native", "driver_held_bytes": driver, "steady_held_bytes": ours}
    assert bool(part("held").disagreement(figures)) is warns


def test_held_without_a_device_is_a_clear_failure(part, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("PYTHONPATH", sys.path[0])
    process = part("process")
    with pytest.raises(process.ProcessFailed, match="held memory, native: .*no CUDA device"):
        process.held_bytes("native", "resnet18", "fp16", 1, warn=pytest.fail)


def test_progress_without_a_terminal_is_plain_lines(part):
    out = io.StringIO()
    with part("progress").Progress(out) as progress:
        progress.model(2, 3, "bert")
        progress.step("runs eager")
        progress.note("bert: odd")
    assert out.getvalue().splitlines() == ["[2/3] bert", "[2/3] bert: runs eager", "bert: odd"]
