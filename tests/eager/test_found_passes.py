"""Real torch programs that name no scopes: the same results, bit for bit, and most of it served.

They run in processes of their own, as there is no way back from serving eager code. Slots are poisoned at their death.

    LIVEPOOL_TEST_ROUNDS=2000 python -m pytest tests/eager/test_found_passes.py -k mixed       the long run
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PRELOAD = Path(os.environ.get("LIVEPOOL_BUILD_DIR", ROOT / "build" / "release")) / "lib" / "liblivepool_preload.so"
ROUNDS = os.environ.get("LIVEPOOL_TEST_ROUNDS", "60")


def run(command, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LIVEPOOL")}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=1200,
                          env={**environment, **variables}, check=False)


def eager(code, **variables):
    """Runs a program with LIVEPOOL=1; it prints JSON at its end."""
    head = "import json, torch, livepool\ntorch.set_num_threads(1)\nlivepool.install('cpu')\n"
    done = run(["-c", head + textwrap.dedent(code)], **{"LIVEPOOL": "1", "LIVEPOOL_FILL": "nan", **variables})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


LOOP = """
from torch import nn
model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64)) for _ in range(8)])
def passes(count):
    before = livepool.stats()["eager_code"]
    with torch.inference_mode():
        for i in range(count):
            y = model(torch.ones(8, 64) * i)
    livepool.wait_for_plans()
    after = livepool.stats()["eager_code"]
    return {name: after[name] - before[name] for name in ("allocations", "passes", "hits", "misses")}
passes(60)
"""


def test_passes_are_found_and_served(livepool):
    counts, _ = eager(LOOP + """
for _ in range(4):
    passes(60)
counts = passes(100)
print(json.dumps({**livepool.stats()["eager_code"], "last": counts}))
""")
    last = counts["last"]
    assert counts["active"] and counts["why_not"] == "" and counts["serving"] == 1
    assert last["passes"] in range(99, 102)
    assert last["hits"] > 0.9 * last["allocations"]
    assert 0 < counts["arena_bytes"] < 2 * counts["recorded_peak_bytes"]


def test_mixed_program_gives_the_same_bytes(livepool, tmp_path):
    program = FOLDER / "mixed_program.py"
    report = tmp_path / "report.json"
    native = run([program, ROUNDS])
    served = run(["-m", "livepool", "run", "--report", report, program, ROUNDS], LIVEPOOL_FILL="nan")
    assert native.returncode == 0, native.stderr
    assert (served.returncode, served.stdout) == (0, native.stdout), served.stderr
    code = json.loads(report.read_text())["eager_code"]
    assert code["threads"] >= 9
    assert code["hits"] > 0.2 * code["allocations"]


def test_a_scope_a_capture_and_a_replay_inside(livepool):
    result, _ = eager(LOOP + """
with torch.inference_mode():
    x = torch.ones(8, 64)
    want = model(x)
    passes(60)
    with livepool.pass_scope("inner"):
        equal = [torch.equal(model(x), want)]
    graph = livepool.capture(model.eval(), x)
    equal.append(torch.equal(graph.replay(x), want))
    for _ in range(5):
        with livepool.pass_scope("inner"):
            equal.append(torch.equal(model(x), want))
        livepool.wait_for_plans()
    equal.append(torch.equal(model(x), want))
    last = passes(100)
print(json.dumps([all(equal), livepool.scope_stats("inner"), last]))
""")
    equal, inner, last = result
    assert equal
    assert inner["passes"] == 6 and inner["hits"] > 0
    assert last["hits"] > 0.5 * last["allocations"], "it goes on afterwards"


def test_a_trim_ends_the_pass_that_is_never_ended(livepool):
    result, _ = eager(LOOP + """
for _ in range(3):
    passes(60)
before = livepool.stats()["arena_bytes"]
print(json.dumps([before, livepool.trim(), livepool.stats()["arena_bytes"]]))
""")
    before, trimmed, after = result
    assert before == trimmed > 0 and after == 0


def test_a_forked_child_runs_on_without(livepool):
    result, _ = eager(LOOP + """
import os
passes(100)
child = os.fork()
if child == 0:
    ok = torch.equal(model(torch.ones(8, 64)), model(torch.ones(8, 64)))
    os._exit(7 if ok else 1)
print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
""")
    assert result == 7


@pytest.mark.parametrize(("variables", "install", "why"), [
    ({"LIVEPOOL": "0"}, True, "LIVEPOOL=0"),
    ({}, True, "not asked for"),
    ({"LIVEPOOL": "1"}, False, "not installed"),
])
def test_says_why_it_is_not_active(livepool, variables, install, why):
    code = f"import json, torch, livepool\nif {install}: livepool.install('cpu')\nx = torch.ones(9) + 1\n" \
           "print(json.dumps(livepool.stats()['eager_code']))"
    stats = json.loads(run(["-c", code], **variables).stdout)
    assert not stats["active"]
    assert why in stats["why_not"]
    assert stats["allocations"] == 0


def test_a_report_and_a_line_at_exit(livepool, tmp_path):
    odd = 'with livepool.pass_scope(chr(34) + chr(10)): torch.ones(3) + 1\n'
    _, stderr = eager(LOOP + odd + "print(json.dumps(passes(200)))", LIVEPOOL_REPORT=str(tmp_path / "r-%p.json"),
                      LIVEPOOL_LOG="info")
    (report,) = tmp_path.glob("r-*.json")
    content = json.loads(report.read_text())
    assert content["active"] and content["eager_code"]["hits"] > 0 and content["cpu"]["hits"] > 0
    assert content["scopes"]['"\n']["passes"] == 1
    assert "allocations served from plans" in stderr
    done = run(["-c", "import torch, livepool; livepool.install('cpu')"], LIVEPOOL_REPORT=str(tmp_path / "no" / "such"))
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "the report cannot be written" in done.stderr and "No such file" in done.stderr


def test_a_bad_variable_is_one_line_and_the_program_runs(livepool):
    done = run(["-c", "import torch, livepool; print(livepool.stats()['active'])"], LIVEPOOL="on", LIVEPOOL_REPROT="x")
    assert (done.returncode, done.stdout) == (0, "False\n")
    assert sorted(done.stderr.splitlines()) == ["livepool: LIVEPOOL=on is ignored: use 0 or 1",
                                                "livepool: LIVEPOOL_REPROT is not a variable of livepool; it is ignored"]


@pytest.mark.skipif(not PRELOAD.exists(), reason=f"{PRELOAD} is not built")
def test_the_preload_library_serves_a_program_that_does_not_know_livepool(livepool, tmp_path):
    report = tmp_path / "report.json"
    done = run(["-c", "import torch\nfor _ in range(300):\n  y = sum((torch.ones(64) * n).relu() for n in range(20))\n"
                "print(y.sum().item())"], LIVEPOOL="1", LIVEPOOL_REPORT=str(report), LD_PRELOAD=str(PRELOAD))
    assert (done.returncode, done.stdout) == (0, "12160.0\n"), done.stderr
    assert json.loads(report.read_text())["eager_code"]["hits"] > 1000
