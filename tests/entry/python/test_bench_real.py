"""`livepool bench` with the compiled module: what scripts/demo does, on small models."""

import json

import pytest

import livepool_command

ITS_FIGURES = ("sum_bytes", "eager_live_peak_bytes", "lower_bound_bytes", "arena_bytes")


@pytest.fixture(scope="module", autouse=True)
def built():
    livepool_command.skip_if_not_built()


def bench(tmp_path, *args):
    path = tmp_path / "figures.json"
    result = livepool_command.run("bench", "--json", path, *args)
    return result, json.loads(path.read_text())["models"] if path.exists() else []


@pytest.mark.parametrize("poison", [[], ["--poison"]], ids=["plain", "poison"])
def test_models_on_the_cpu_are_bitwise_equal(tmp_path, poison):
    result, models = bench(tmp_path, "--device", "cpu", "--models", "resnet18,convnext_tiny,bert,llama", *poison)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(models) == 4
    for model in models:
        assert model["bitwise_equal"] is True and model["hits"] > 10
        total, peak, bound, arena = (model[figure] for figure in ITS_FIGURES)
        assert 0 < bound <= arena < total and bound <= peak


def latency(*args):
    return livepool_command.run("latency", *args, COLUMNS="120")


def figures_of(model, stdout):
    line, = [line for line in stdout.splitlines() if line.startswith(f"| {model} ")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_latency_on_the_cpu_has_no_graphs():
    result = latency("--device", "cpu", "--models", "resnet18")
    assert result.returncode == 0, result.stdout + result.stderr
    ops, eager, replay, *graphs = figures_of("resnet18", result.stdout)
    assert int(ops) > 20 and float(eager) > 0 and float(replay) > 0
    assert graphs == ["-", "-", "-", "-"]


@pytest.mark.gpu
def test_latency_on_cuda_has_all_figures():
    result = latency("--device", "cuda", "--models", "resnet18,bert")
    assert result.returncode == 0, result.stdout + result.stderr
    for model in ("resnet18", "bert"):
        ops, eager, replay, graph, arena, torch_graph, _ = figures_of(model, result.stdout)
        assert 0 < float(graph) < float(eager) and float(torch_graph) > 0 and float(arena) > 0


@pytest.mark.gpu
@pytest.mark.parametrize("poison", [[], ["--poison"]], ids=["plain", "poison"])
def test_models_on_cuda_are_bitwise_equal_and_hold_less(tmp_path, poison):
    result, models = bench(tmp_path, "--device", "cuda", "--batch", "32", "--models", "resnet50,convnext_base", *poison)
    assert result.returncode == 0, result.stdout + result.stderr
    for model in models:
        assert model["bitwise_equal"] is True
        assert model["arena_bytes"] <= model["livepool_held_bytes"] < model["native_held_bytes"]
