"""The tables of memory: `livepool memory`, `livepool batch`, `livepool shapes`, at small sizes with the compiled module."""

import json
import math

import pytest

import livepool_command

MIB = 1 << 20


@pytest.fixture(scope="module", autouse=True)
def built():
    livepool_command.skip_if_not_built()


def table(tmp_path, *args):
    """The finished process, the cells of the table, and the JSON."""
    path = tmp_path / "figures.json"
    result = livepool_command.run(*args, "--json", path, timeout=900, OMP_NUM_THREADS="1")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in result.stdout.splitlines() if line.startswith("|")]
    return result, cells, json.loads(path.read_text()) if path.exists() else None


def check_environment(result, document):
    environment = document["environment"]
    assert environment["torch"] in result.stdout and environment["machine"] in result.stdout


@pytest.mark.parametrize("outputs", ["fresh", "arena"])
def test_memory(tmp_path, outputs):
    result, cells, document = table(tmp_path, "memory", "--device", "cpu", "--models", "unet@2,gru@1x8", "--outputs", outputs)
    assert result.returncode == 0, result.stdout + result.stderr
    check_environment(result, document)
    assert [row[0] for row in cells] == ["model", "---", "unet@2", "gru@1x8", "geometric mean"]
    assert "[1/2] unet@2: a process of its own, livepool" in result.stderr
    for row in document["models"]:
        assert row["bitwise_equal"] is True and 0 < row["arena_bytes"] < row["sum_bytes"]
    ratios = [row["arena_of_peak"] for row in document["models"]]
    assert document["geometric_means"]["arena_of_peak"] == pytest.approx(math.prod(ratios) ** 0.5)
    assert all(row["native_held_bytes"] >= 0 and row["livepool_held_bytes"] >= 0 for row in document["models"])


def test_a_model_that_fails_leaves_the_others(tmp_path):
    result, _, document = table(tmp_path, "memory", "--device", "cpu", "--models", "unet@1x4,gru@1x8")  # 4 pixels cannot be halved three times
    assert result.returncode == 1
    assert "unet@1x4: native: " in result.stdout and "Traceback" not in result.stdout
    assert document["models"][1]["bitwise_equal"] is True


def test_batch(tmp_path):
    result, cells, document = table(tmp_path, "batch", "--device", "cpu", "--models", "unet", "--limit", "256MiB", "--first", "4",
                                    "--most", "8", "--resolution", "0.5", "--outputs", "arena", "--since", "steady")
    assert result.returncode == 0, result.stdout + result.stderr
    check_environment(result, document)
    row, = document["models"]
    assert 0 < row["native"] <= 8 and 0 < row["livepool"] <= 8
    assert cells[2] == ["unet", str(row["native"]), str(row["livepool"]), f"{row['of_native']:.3f}"]
    assert "[1/1] unet: native, batch 4" in result.stderr


@pytest.mark.parametrize(("args", "says"), [
    (["--limit", "much"], "'much' is no size"), (["--limit", "0"], "'0' is no size"), (["--resolution", "1.5"], "'1.5' is not a number in [0, 1)"),
    (["--first", "0"], "'0' is not a whole number above 0"), (["--since", "noon"], "invalid choice: 'noon'"),
    (["--batch", "3"], "unrecognized arguments: --batch"), (["--models", "resnt50"], "near matches: resnet50"),
])
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, args, says):
    result, _, _ = table(tmp_path, "batch", *args)
    assert result.returncode == 2
    assert says in result.stderr and len(result.stderr.splitlines()) == 1


def test_shapes(tmp_path):
    result, cells, document = table(tmp_path, "shapes", "--device", "cpu", "--models", "unet@1,2x64,128 gru@1,2,3x4,8")
    assert result.returncode == 0, result.stdout + result.stderr
    check_environment(result, document)
    for row, shapes in zip(document["models"], (4, 6), strict=True):
        ours = row["livepool"]
        assert row["shapes"] == ours["plans"] == shapes
        assert ours["largest_plan_bytes"] <= ours["arena_bytes"] <= ours["largest_plan_bytes"] + 2 * MIB
        assert ours["sum_of_plans_bytes"] > ours["largest_plan_bytes"]
        assert len(ours["held_bytes_after"]) == len(row["native"]["held_bytes_after"]) == 4
    assert cells[2][0] == "unet@1,2x64,128"


@pytest.mark.parametrize(("true", "first", "most", "resolution"), [
    (100, 64, 8192, 0), (1, 64, 8192, 0), (0, 64, 8192, 0), (8192, 64, 8192, 0), (9000, 64, 8192, 0), (7, 64, 8192, 0), (1056, 64, 8192, 0.02),
    (63, 64, 64, 0), (64, 64, 64, 0), (5, 1, 5, 0),
])
def test_the_largest_batch_is_found(true, first, most, resolution):
    from livepool.bench.batch import largest

    tried = []

    def fits(batch):
        assert 1 <= batch <= most and batch not in tried
        tried.append(batch)
        return batch <= true

    found = largest(fits, first, most, resolution)
    assert min(true, most) * (1 - resolution) - 1 < found <= min(true, most)
    assert resolution or found == min(true, most)
    assert len(tried) <= 2 * math.log2(most) + 2


def test_after_which_round_it_is_flat():
    from livepool.bench.shapes import flat_after

    assert flat_after([5, 5, 5, 5]) == 1
    assert flat_after([4, 5, 5, 5]) == 2
    assert flat_after([1, 2, 3, 4]) is None


@pytest.mark.gpu
def test_the_tables_on_cuda(tmp_path):
    result, _, document = table(tmp_path, "memory", "--device", "cuda", "--models", "resnet18@8,bert@4x64", "--outputs", "arena")
    assert result.returncode == 0, result.stdout + result.stderr
    for row in document["models"]:
        assert row["bitwise_equal"] is True and row["arena_bytes"] <= row["livepool_held_bytes"]
    result, _, document = table(tmp_path, "shapes", "--device", "cuda", "--models", "resnet18@1,8x64,128")
    assert result.returncode == 0, result.stdout + result.stderr
    held = document["models"][0]["livepool"]["held_bytes_after"]
    assert max(held) == held[0], "flat after one round"
    result, _, document = table(tmp_path, "batch", "--device", "cuda", "--models", "resnet18", "--limit", "1GiB", "--resolution", "0.2")
    assert result.returncode == 0, result.stdout + result.stderr
    assert document["models"][0]["native"] > 0 and document["models"][0]["livepool"] > 0
