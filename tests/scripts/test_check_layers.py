"""scripts/check_layers.py passes on the tree, and fails on made-up trees, one for each rule."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "check_layers.py"


def check(root):
    return subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)


def tree(root, files):
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def test_the_tree_keeps_the_order():
    result = check(ROOT)
    assert result.returncode == 0, result.stdout


SOUND = {
    "allocator/base/units.cc": "#include <livepool/base/units.h>\n#include <cstddef>\n",
    "allocator/plan/plan.cc": '#include "livepool/plan/plan.h"\n#include <livepool/base/units.h>\n',
    "allocator/backend/host.cc": "#include <livepool/base/units.h>\n#include <livepool/plan/plan.h>\n",
    "allocator/pool/pool.cc": "#include <livepool/backend/backend.h>\n#include <livepool/plan/plan.h>\n",
    "eager/pass.cc": "#include <livepool/pool/arena.h>\n#include <livepool/plan/plan.h>\n",
    "allocator/torch/cpu.cc": "#include <livepool/eager/pass.h>\n#include <livepool/pool/arena.h>\n#include <c10/core/Allocator.h>\n#include <cuda.h>\n",
    "graph_capture/trace.cc": "#include <livepool/graph/trace.h>\n#include <livepool/pool/arena.h>\n",
    "graph_capture/torch/recorder.cc": "#include <ATen/record_function.h>\n#include <livepool/torch/cpu.h>\n"
                                       "#include <livepool/graph/trace.h>\n#include <livepool/backend/backend.h>\n",
    "entry/cpp/livepool.cc": "#include <livepool/livepool.h>\n#include <livepool/capture/recorder.h>\n#include <torch/torch.h>\n",
    "tests/allocator/any_test.cc": "#include <torch/torch.h>\n#include <livepool/capture/recorder.h>\n",
}


def test_a_sound_tree_passes(tmp_path):
    result = check(tree(tmp_path, SOUND))
    assert result.returncode == 0, result.stdout
    assert "9 files checked, 0 violations" in result.stdout


ORDER = ["base", "plan", "backend", "pool", "eager", "torch"]
FOLDER = {**{layer: f"allocator/{layer}" for layer in ORDER}, "eager": "eager", "graph": "graph_capture", "capture": "graph_capture/torch"}
UPWARD = [(low, high) for number, low in enumerate(ORDER) for high in ORDER[number + 1:]]
UPWARD += [(low, high) for low in ORDER for high in ("graph", "capture")]
UPWARD += [("graph", other) for other in ("backend", "eager", "torch", "capture")]
UPWARD += [("capture", "eager")]


@pytest.mark.parametrize(("low", "high"), UPWARD)
def test_a_layer_above_is_refused(tmp_path, low, high):
    path = f"{FOLDER[low]}/x.cc"
    result = check(tree(tmp_path, {path: f"#include <vector>\n#include <livepool/{high}/y.h>\n"}))
    assert result.returncode == 1
    assert f"{path}:2: layer {low} includes <livepool/{high}/y.h> of layer {high}" in result.stdout


@pytest.mark.parametrize("layer", FOLDER)
def test_entry_is_above_all(tmp_path, layer):
    result = check(tree(tmp_path, {f"{FOLDER[layer]}/x.h": "#include <livepool/livepool.h>\n"}))
    assert result.returncode == 1
    assert f"layer {layer} includes <livepool/livepool.h> of layer entry" in result.stdout


@pytest.mark.parametrize("header", ["torch/torch.h", "ATen/ATen.h", "c10/core/Allocator.h", "cuda.h", "cuda/std/span",
                                    "cuda_runtime_api.h", "cublas_v2.h", "torch/csrc/jit/api/module.h"])
@pytest.mark.parametrize("layer", ["base", "plan", "backend", "pool", "eager", "graph"])
def test_torch_and_cuda_are_for_the_torch_folders(tmp_path, layer, header):
    result = check(tree(tmp_path, {f"{FOLDER[layer]}/deep/er/x.cc": f"\n\n#  include <{header}>\n"}))
    assert result.returncode == 1
    assert f"{FOLDER[layer]}/deep/er/x.cc:3: layer {layer} includes <{header}>" in result.stdout


@pytest.mark.parametrize(("files", "message"), [
    ({"allocator/base/x.cc": '#include "../plan/y.h"\n', "allocator/plan/y.h": ""}, "of layer plan"),
    ({"graph_capture/x.cc": '#include "torch/y.h"\n', "graph_capture/torch/y.h": ""}, "only the two torch folders"),
    ({"graph_capture/x.cc": '#include "./torch/y.h"\n', "graph_capture/torch/y.h": ""}, "of layer capture"),
    ({"allocator/base/x.cc": "#include <livepool/bsae/y.h>\n"}, "of no known layer"),
    ({"allocator/base/x.cc": "#include SOME_HEADER\n"}, "cannot be checked"),
    ({"allocator/extra/x.cc": ""}, "is in no layer's folder"),
    ({"allocator/base/include/livepool/pool/x.h": ""}, "but lies in the folder of base"),
    ({"graph_capture/include/livepool/capture/x.h": ""}, "but lies in the folder of graph"),
    ({"allocator/base/x.cc": "/* one */ #include <livepool/pool/y.h>\n"}, "of layer pool"),
    ({"docs/x.cc": ""}, "no source files"),
])
def test_other_rules(tmp_path, files, message):
    result = check(tree(tmp_path, files))
    assert result.returncode == 1
    assert message in result.stdout


def test_comments_do_not_count(tmp_path):
    text = "// #include <torch/torch.h>\n/* \n#include <torch/torch.h>\n*/\n#include <vector>\n"
    result = check(tree(tmp_path, {"allocator/base/x.cc": text}))
    assert result.returncode == 0, result.stdout


def test_lines_after_a_comment_keep_their_numbers(tmp_path):
    result = check(tree(tmp_path, {"allocator/base/x.cc": "/*\n\n*/\n#include <torch/torch.h>\n"}))
    assert "allocator/base/x.cc:4: " in result.stdout
