"""The command line as a person meets it: help, mistakes, exit codes. Runs on the stand-in of bench_standin.py."""

import json

import pytest

import bench_standin

KEYS = ["model", "batch", "dtype", "weights_bytes", "sum_bytes", "eager_live_peak_bytes", "lower_bound_bytes",
        "arena_bytes", "native_held_bytes", "livepool_held_bytes", "eager_ms", "replay_ms", "bitwise_equal",
        "max_abs_diff", "hits", "misses", "not_captured"]
SMALL = "mobilenet_v3_small"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return bench_standin.lay(tmp_path_factory.mktemp("standin"))


@pytest.mark.parametrize(("args", "says"), [
    (["bench", "--models", "resnt50"], "unknown model 'resnt50'; near matches: resnet50"),
    (["bench", "--models", "resnet18,berd"], "unknown model 'berd'; near matches: bert"),
    (["bench", "--models", "qqqqqq"], "unknown model 'qqqqqq'; no name is near"),
    (["bench", "--models", ","], "no model is named"),
    (["bench", "--device", "tpu"], "invalid choice: 'tpu'"),
    (["bench", "--device", "cuda"], "torch sees no CUDA device here"),
    (["bench", "--batch", "0"], "'0' is not a whole number above 0"),
    (["bench", "--batch", "-3"], "'-3' is not a whole number above 0"),
    (["bench", "--batch", "two"], "'two' is not a whole number above 0"),
    (["bench", "--dtype", "int8"], "invalid choice: 'int8'"),
    (["bench", "--json", "/no/such/folder/x.json"], "cannot be written"),
    (["bench", "--frobnicate"], "unrecognized arguments: --frobnicate"),
    (["latency", "--models", "resnt50"], "unknown model 'resnt50'; near matches: resnet50"),
    (["latency", "--batch", "0"], "'0' is not a whole number above 0"),
    (["latency", "--poison"], "unrecognized arguments: --poison"),
    (["memory", "--models", "resnt50"], "unknown model 'resnt50'; near matches: resnet50"),
    (["memory", "--outputs", "slots"], "invalid choice: 'slots'"),
    (["memory", "--json", "/no/such/folder/x.json"], "cannot be written"),
    (["shapes", "--models", "llama1b@1x"], "'llama1b@1x' is no model with shapes; an example: llama1b@1,2,4x128,256"),
    (["shapes", "--models", "lama1b@1x8"], "unknown model 'lama1b'; near matches: llama1b"),
    (["shapes", "--device", "cuda"], "torch sees no CUDA device here"),
    (["frobnicate"], "invalid choice: 'frobnicate'"),
    ([], "required: COMMAND"),
])
def test_a_mistake_is_one_line_and_exit_code_2(folder, args, says):
    result = bench_standin.run(folder, *args)
    assert result.returncode == 2
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_help_says_what_is_there(folder):
    result = bench_standin.run(folder, "--help")
    assert result.returncode == 0
    assert "bench" in result.stdout and "latency" in result.stdout and "info" in result.stdout


def test_help_of_bench_names_options_defaults_and_exit_codes(folder):
    result = bench_standin.run(folder, "bench", "--help")
    assert result.returncode == 0
    text = " ".join(result.stdout.split())
    for part in ("--device", "--models", "--batch", "--dtype", "--poison", "--json", "32 on cuda, 1 on cpu",
                 "resnet50,vit_b_16,convnext_tiny,swin_t,bert,llama", "exit code", "LIVEPOOL_FILL"):
        assert part in text, part


def test_info(folder):
    result = bench_standin.run(folder, "info")
    assert result.returncode == 0
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert lines["livepool"] == "0.0-standin"
    assert lines["installed"].startswith("no")
    assert lines["torch"].startswith("2.")
    assert "no device here" in lines["cuda"]


def test_a_right_run(folder, tmp_path):
    path = tmp_path / "figures.json"
    result = bench_standin.run(folder, "bench", "--models", f"{SMALL},bert", "--json", path)
    assert result.returncode == 0, result.stderr
    assert f"[1/2] {SMALL}: captures and plans" in result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines() if "equal" in line] == [SMALL, "bert"]

    document = json.loads(path.read_text())
    assert list(document) == ["environment", "models"]
    assert document["environment"]["device"] == "cpu" and document["environment"]["torch"].startswith("2.")
    first, second = document["models"]
    assert list(first) == list(second) == KEYS
    assert (first["model"], first["batch"], first["dtype"]) == (SMALL, 1, "fp32")
    assert first["weights_bytes"] > 10_000_000
    assert (first["sum_bytes"], first["arena_bytes"]) == (4 << 20, 1 << 20)
    assert first["native_held_bytes"] is None and first["livepool_held_bytes"] is None
    assert first["eager_ms"] > 0 and first["replay_ms"] > 0
    assert (first["bitwise_equal"], first["max_abs_diff"]) == (True, 0.0)
    assert (first["hits"], first["misses"]) == (7, 1), "of one replay"


@pytest.mark.parametrize(("spoil", "says", "equal", "largest"), [
    ("replay", "replay differs from eager: ", False, 0.5),
    ("second replay", "some by NaN or infinity", False, None),
    ("capture", "Error: aten::bernoulli is not captured", None, None),
    ("hits", "the replay took nothing from the arena", True, 0.0),
])
def test_a_wrong_model_is_exit_code_1_and_the_others_run(folder, tmp_path, spoil, says, equal, largest):
    path = tmp_path / "figures.json"
    result = bench_standin.run(folder, "bench", "--models", f"{SMALL},llama", "--json", path, STANDIN_SPOIL=spoil)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    for model, figures in zip((SMALL, "llama"), json.loads(path.read_text())["models"], strict=True):
        assert any(line.startswith(f"{model}: ") and says in line for line in result.stdout.splitlines())
        assert list(figures) == KEYS
        assert figures["bitwise_equal"] is equal
        assert figures["max_abs_diff"] == (None if largest is None else pytest.approx(largest, rel=1e-3))


@pytest.mark.parametrize(("spoil", "why"), [("refused", "torchvision::nms has sizes that depend on data"),
                                            ("guard", "aten::nonzero gave sizes [3] at capture and [4] now")])
def test_a_model_that_is_not_captured_runs_as_it_is(folder, tmp_path, spoil, why):
    path = tmp_path / "figures.json"
    result = bench_standin.run(folder, "bench", "--models", SMALL, "--json", path, STANDIN_SPOIL=spoil)
    assert result.returncode == 0, result.stdout + result.stderr
    assert any(line.split()[:1] == [SMALL] and "as it is" in line for line in result.stdout.splitlines())
    assert f"{SMALL}: not captured: {why}" in result.stdout.splitlines()
    figures, = json.loads(path.read_text())["models"]
    assert figures["not_captured"] == why and figures["bitwise_equal"] is True and figures["arena_bytes"] is None
    assert figures["eager_ms"] > 0 and figures["replay_ms"] is None


def test_one_that_is_not_captured_must_be_equal_all_the_same(folder):
    result = bench_standin.run(folder, "bench", "--models", SMALL, STANDIN_SPOIL="refused and wrong")
    assert result.returncode == 1
    assert "the wrapped module differs from eager" in result.stdout


def test_a_failed_install_is_one_line(folder):
    result = bench_standin.run(folder, "bench", "--models", SMALL, STANDIN_SPOIL="install")
    assert result.returncode == 1
    assert result.stderr == "livepool bench: Error: unsupported torch version 9.9\n"


def test_poison_is_set_before_livepool_is_imported(folder):
    result = bench_standin.run(folder, "bench", "--models", SMALL, "--poison", STANDIN_FILL_IS="nan")
    assert result.returncode == 0, result.stdout
    result = bench_standin.run(folder, "bench", "--models", SMALL, STANDIN_FILL_IS="nan", LIVEPOOL_FILL="")
    assert result.returncode == 1, "the stand-in's check of the environment is in force"
