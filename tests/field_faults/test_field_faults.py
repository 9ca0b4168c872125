"""Faults that hurt users of similar software, and the tests that pin the right behaviour here.

Row, what must hold, and the tests: `file::name`. CPU rows run everywhere; those on a GPU are marked gpu.

1   same sizes, same order, other frees: no two live buffers overlap, the divergence is counted
        tests/allocator/pool/pass_test.cc::WhatLivesLongerThanPlannedIsNotOverwritten
        tests/graph_capture/replay_random_test.cc::CostsMissesAndNothingElse
2   requests of nothing, freed in any order, while recording and serving
        tests/allocator/allocator_conformance.h::RequestsOfNothingTakeNothing
        tests/field_faults/test_memory.py::test_requests_of_nothing
3   out of memory is torch.OutOfMemoryError, and the next small request works
        tests/allocator/allocator_conformance.h::AfterARefusalTheNextRequestIsServed
        tests/field_faults/test_memory.py::test_out_of_memory_is_torchs_error
        tests/field_faults/test_gpu.py::test_out_of_memory_is_torchs_error
4   memory statistics, peaks, snapshots and memory_viz work, with the arena in the sums
        tests/field_faults/test_gpu.py::test_statistics_count_the_arena
5   cuDNN benchmark mode works on record and replay
        tests/field_faults/test_gpu.py::test_cudnn_benchmark
6   trim() and empty_cache() give the arena back to the driver
        tests/field_faults/test_gpu.py::test_the_driver_gets_the_arena_back
7   another thread's allocations are neither in a plan nor in its slots
        tests/allocator/allocator_conformance.h::APassServesItsOwnThreadOnly
        tests/entry/python/test_capture_effects.py::test_another_thread_is_served_by_upstream
8   idle arenas and caches are released before any OOM
        tests/allocator/pool/arena_pool_test.cc::TakesTheMemoryOfIdleArenasBeforeItFails
        tests/allocator/pool/pool_failure_test.cc::IdleMemoryMakesRoom
        tests/allocator/torch/cuda_failure_test.cc::UpstreamGetsTheIdleArena
9   a failure at each n-th driver call: rolled back, next request fine, destructors silent
        tests/allocator/backend/cuda_backend_failure_test.cc::NothingIsLeakedOrLost
        tests/allocator/pool/pool_failure_test.cc::SeveralArenasOneOfThemOccupied
        tests/allocator/torch/cuda_failure_test.cc::PassesAndTrims
10  while a graph is captured: no free, unmap or wait, a clean OOM error
        tests/allocator/torch/cuda_failure_test.cc::WhileAGraphIsCapturedNothingIsFreedOrWaitedFor
        tests/field_faults/test_gpu.py::test_out_of_memory_during_a_capture
11  preloaded programs without torch: unchanged output and exit code, no delay
        tests/entry/preload/test_preload.py::test_programs_without_torch_are_unchanged
        tests/entry/preload/test_preload.py::test_programs_without_torch_are_not_delayed
12  a status call and an exit message say active or why not
        tests/entry/preload/test_preload.py::test_says_at_exit_whether_it_was_active
        tests/entry/preload/test_preload.py::test_without_its_library_the_program_runs_and_says_so
        tests/field_faults/test_status.py::test_status_follows_what_torch_uses
13  tensors alive in globals, statics and other threads at exit: exit code 0, no output
        tests/field_faults/test_exit.py::test_python
        tests/field_faults/exit_app.cc::main
        tests/entry/preload/test_preload.py::test_tensors_alive_at_exit_do_no_harm
        tests/allocator/pool/arena_pool_test.cc::SlotsMayBeFreedWhileTheProcessEnds
14  memory that another stream still reads is not reused
        tests/field_faults/test_gpu.py::test_record_stream
15  two shapes in turns, 50 times: right values, at most one message
        tests/field_faults/test_memory.py::test_two_sizes_in_turns
        tests/field_faults/test_gpu.py::test_two_sizes_in_turns
16  resize_, set_ and resized storages inside a pass
        tests/field_faults/test_memory.py::test_storages_that_change
17  odd sizes: every pointer a multiple of 64 on the CPU, of 512 on CUDA
        tests/allocator/allocator_conformance.h::OddSizesAreAlignedAndApart
        tests/graph_capture/torch/test_storage_changes.py::test_odd_sizes
18  memory of a captured graph is not trimmed
        tests/allocator/pool/arena_pool_test.cc::ATrimLeavesPinnedArenas
        tests/field_faults/test_gpu.py::test_a_trim_leaves_a_captured_graph_alone
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def table():
    """The rows of the docstring: {row: [(path, name)]}."""
    rows = {}
    for line in __doc__.splitlines():
        if row := re.match(r"(\d+) +\S", line):
            rows[int(row[1])] = []
        elif test := re.match(r" {8}(tests/\S+)::(\w+)$", line):
            rows[max(rows)].append((test[1], test[2]))
    return rows


def test_every_row_is_there():
    assert list(table()) == list(range(1, 19))


@pytest.mark.parametrize("row", range(1, 19))
def test_each_test_exists_and_names_its_row(row):
    assert table()[row], f"expected: a test for row {row}"
    for path, name in table()[row]:
        text = (ROOT / path).read_text()
        assert re.search(rf"\b{name}\b", text), f"{path} has no {name}"
        rows = {int(number) for listed in re.findall(r"[Ff]ield faults? ([\d, ]+)", text)
                for number in re.findall(r"\d+", listed)}
        assert row in rows, f"{path} does not say 'field fault {row}'"
