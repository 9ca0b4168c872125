"""The first replay on new bytes is compared with the callable itself. Here the callable changes behind livepool's back, in
a way that no rule of the capture sees: through a global variable."""

import threading

import pytest
import torch

FACTOR = {"value": 2}


@pytest.fixture(autouse=True)
def _factor():
    FACTOR["value"] = 2
    yield
    FACTOR["value"] = 2


def masked(x):
    y = x * FACTOR["value"]
    y[0] = float("-inf")
    return y


def with_nan(x):
    y = x * FACTOR["value"]
    y[0] = float("nan")
    return y


CASES = {
    "an output with an infinity": (masked, torch.ones(4), torch.full((4,), 5.0), 3),
    "an output with NaN": (with_nan, torch.ones(4), torch.full((4,), 5.0), 3),
    "large integers that double precision cannot tell apart": (
        lambda x: x + FACTOR["value"], torch.zeros(4, dtype=torch.int64), torch.full((4,), 2**60), 3),
    "zeros of another sign": (lambda x: x * FACTOR["value"], torch.ones(4), torch.zeros(4), -2),
    "complex numbers": (lambda x: x * FACTOR["value"], torch.ones(4, dtype=torch.complex64), torch.full((4,), 1 + 2j), 3),
    "a boolean": (lambda x: x > FACTOR["value"], torch.zeros(4), torch.full((4,), 3.0), 4),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_result_is_found(livepool, case):
    fn, captured, other, factor = CASES[case]
    graph = livepool.capture(fn, captured)
    FACTOR["value"] = factor
    for _ in range(2):  # the graph is dropped: from now on always
        with pytest.raises(livepool.CheckFailed, match="differs from eager"):
            graph.replay(other)


def test_an_equal_result_is_the_replays_own(livepool, same):
    graph = livepool.capture(masked, torch.ones(4))
    same(graph.replay(torch.full((4,), 5.0)), masked(torch.full((4,), 5.0)))
    assert graph.report()["checked"] and graph.report()["replays"] == 1


def test_a_pass_without_arguments_is_checked_at_once(livepool):
    graph = livepool.capture(lambda: torch.ones(3) * FACTOR["value"])
    FACTOR["value"] = 3
    with pytest.raises(livepool.CheckFailed):
        graph.replay()


def test_changed_state_is_new_bytes_too(livepool):
    weight = torch.ones(3)
    x = torch.ones(3)
    graph = livepool.capture(lambda x: x * weight * FACTOR["value"], x)
    graph.replay(x)
    assert not graph.report()["checked"]  # nothing new to see
    FACTOR["value"] = 3
    graph.replay(x)
    weight.mul_(2)
    with pytest.raises(livepool.CheckFailed):
        graph.replay(x)


def test_an_input_that_was_read_is_not_read_again_until_it_changes(livepool):
    x = torch.ones(3)
    graph = livepool.capture(lambda x: x * FACTOR["value"], x)
    FACTOR["value"] = 3
    for _ in range(3):
        graph.replay(x)
    x.add_(1)  # in place: the same address, another version
    with pytest.raises(livepool.CheckFailed):
        graph.replay(x)


def test_another_input_at_the_address_of_one_that_was_read_is_read(livepool):
    """The allocator gives the bytes of a freed tensor to the next one, whose version counter starts anew too."""
    graph = livepool.capture(lambda x: x * FACTOR["value"], torch.ones(300))
    FACTOR["value"] = 3
    reused = 0
    for _ in range(20):
        x = torch.ones(300)
        address = x.data_ptr()
        graph.replay(x)
        del x
        other = torch.full((300,), 5.0)
        reused += other.data_ptr() == address and other._version == 0
        with pytest.raises(livepool.CheckFailed):
            graph.replay(other)
        graph = livepool.capture(lambda x: x * FACTOR["value"], torch.ones(300))
        FACTOR["value"] += 1
    assert reused > 0, "no address was reused, so that nothing was tested"


def test_an_error_of_the_callable_leaves_no_effects(livepool):
    counter = torch.zeros(1)

    def fn(x):
        if FACTOR["value"] == 3:
            raise ValueError("not today")
        counter.add_(1)
        return x + counter

    graph = livepool.capture(fn, torch.zeros(2))
    FACTOR["value"] = 3
    for _ in range(2):
        with pytest.raises(ValueError, match="not today"):
            graph.replay(torch.ones(2))
    assert counter.item() == 1


def test_threads_lose_no_update_while_one_of_them_checks(livepool):
    counter = torch.zeros(1)
    weight = torch.randn(64, 64)

    def fn(x):
        counter.add_(1)
        return (x @ weight).relu() @ weight

    graph = livepool.capture(fn, torch.ones(64, 64))

    def work(seed):
        with torch.no_grad():
            for _ in range(5):
                graph.replay(torch.full((64, 64), float(seed + 2)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.item() == 1 + 15


def test_generators_of_the_process_are_left_alone_by_a_pass_that_draws_nothing(livepool):
    """Also while the check runs the callable, so that other threads' draws do not repeat."""
    drawn = []

    def fn(x):
        if FACTOR["value"] == 3:  # only in the check: another thread draws meanwhile
            thread = threading.Thread(target=lambda: drawn.append(torch.rand(1).item()))
            thread.start()
            thread.join()
        return x * 2

    graph = livepool.capture(fn, torch.ones(2))
    FACTOR["value"] = 3
    graph.replay(torch.zeros(2))
    assert len(drawn) == 1
    after = torch.rand(1).item()
    assert after != drawn[0]


def test_an_output_that_lies_in_an_input_shares_its_version_counter(livepool):
    graph = livepool.capture(lambda x: (x * 2, x.view(4)), torch.ones(2, 2))
    for _ in range(2):
        x = torch.zeros(2, 2)
        before = x._version
        graph.replay(x)[1].add_(1)
        assert x._version > before
