"""Field fault 13: tensors in globals, statics and other threads when the process ends: exit code 0, no output.

In C++: exit_app.cc. Under LD_PRELOAD: tests/entry/preload/test_preload.py.
"""

import pytest

# A daemon thread that computes while Python ends is left out: there PyTorch alone aborts, too ("terminate called without
# an active exception").
KEEPERS = {
    "global": "kept = graph.replay(ones(8))",
    "builtins": "import builtins; builtins.kept = [graph.replay(ones(8)), graph, torch.ones(1000)]",
    "class attribute": "class Keeper: kept = graph.replay(ones(8)); graph = graph",
    "cycle": "kept = [graph.replay(ones(8))]; kept.append(kept)",
    "another thread": """
def work():
    torch.set_grad_enabled(False)
    local.kept = graph.replay(ones(8))
    started.set()
    threading.Event().wait()
started, local = threading.Event(), threading.local()
threading.Thread(target=work, daemon=True).start()
started.wait()""",
    "atexit": """
import atexit
atexit.register(lambda: graph.replay(ones(8, 3)))
atexit.register(livepool.trim)""",
    "slot of the pass": """
library = torch.library.Library("field_faults", "FRAGMENT")
library.define("keep(Tensor x) -> Tensor")
kept = []
def keep(x):
    y = x * 3
    kept.append(y)
    return y + 1
library.impl("keep", keep, "CompositeExplicitAutograd")
graph = livepool.capture(lambda x: torch.ops.field_faults.keep(x + 1) * 2, ones(8))
graph.replay(ones(8, 2)); graph.replay(ones(8, 3))""",
}


@pytest.mark.parametrize("text", KEEPERS.values(), ids=KEEPERS)
def test_python(program, text):
    assert program("graph = livepool.capture(network, ones(8))\n" + text, LIVEPOOL_CHECK="off") == ""


@pytest.mark.gpu
@pytest.mark.parametrize("text", KEEPERS.values(), ids=KEEPERS)
def test_python_on_a_gpu(program, text):
    assert program("graph = livepool.capture(network, ones(8))\n" + text, device="cuda", LIVEPOOL_CHECK="off") == ""


def test_the_exit_code_stays(program):
    program("""
        import subprocess, os
        child = "import sys, torch, livepool; livepool.install('cpu'); kept = torch.ones(9); sys.exit(7)"
        result = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True)
        assert (result.returncode, result.stdout, result.stderr) == (7, "", ""), result
        """)
