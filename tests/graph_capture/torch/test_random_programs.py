"""Random programs of pointwise ops, views, in-place ops and reductions: replayed bit for bit, on poisoned slots."""

import random

import pytest
import torch

N = 6


def _pointwise(pick, x):
    return [torch.tanh, torch.relu, lambda t: t * 1.5, lambda t: t + 1, torch.neg, torch.abs, lambda t: t.clamp(-1, 1),
            lambda t: torch.nn.functional.gelu(t)][pick(8)](x)


def _binary(pick, x, y):
    return [torch.add, torch.mul, torch.sub, torch.maximum, torch.minimum, lambda a, b: torch.where(a > b, a, b),
            lambda a, b: torch.lerp(a, b, 0.25), lambda a, b: torch.addcmul(a, b, b, value=0.5)][pick(8)](x, y)


def _view(pick, x):
    """A view of N x N elements."""
    return [lambda t: t.t(), lambda t: t.detach(), lambda t: t.data, lambda t: t[0].expand(N, N), lambda t: t.as_strided((N, N), (1, 1), t.storage_offset()),
            lambda t: t.view(torch.int32).view(torch.float32), lambda t: t[:, :1].expand(N, N), lambda t: t.unsqueeze(0).squeeze(0),
            lambda t: t.flip(0).t()][pick(9)](x)


def _write(pick, x, y):
    [lambda t: t.add_(y), lambda t: t.mul_(0.5), lambda t: t[1:3].copy_(y[:2]), lambda t: t.t()[0].zero_(), lambda t: t.copy_(y.t().clone()),
     lambda t: t.relu_(), lambda t: t[0].add_(1), lambda t: torch.tanh(y, out=t)][pick(8)](x)


def _contract(pick, x, y):
    return [lambda a, b: a @ b, lambda a, b: a.softmax(-1) + b.sum(0), lambda a, b: torch.cat([a, b])[3:3 + N].clone(), lambda a, b: a.cumsum(0),
            lambda a, b: a.sort(0).values, lambda a, b: a.contiguous(), lambda a, b: b.clone()][pick(7)](x, y)


def make_program(seed: int, length: int = 14):
    """A function of two N x N tensors; the same seed gives the same function."""
    def program(x, y):
        choice = random.Random(seed)
        pick = choice.randrange
        alive = [x * 1.0, y]
        for _ in range(length):
            a, b = choice.choice(alive), choice.choice(alive)
            kind = pick(10)
            dense = a.is_contiguous()
            if kind < 3:
                alive.append(_pointwise(pick, a))
            elif kind < 5:
                alive.append(_binary(pick, a, b))
            elif kind < 7:
                alive.append(_view(pick, a) if dense else a.t())
            elif kind == 7:
                target = a if dense else a.contiguous() + 0.5
                _write(pick, target, b * 0.5)
                alive.append(target)
            else:
                alive.append(_contract(pick, a, b))
            if len(alive) > 4:
                alive.pop(pick(len(alive)))
        return alive[-1], alive[0], alive[-1].sum()

    return program


@pytest.mark.parametrize("seed", range(60))
def test_random_program(check, normal, seed):
    check(make_program(seed), normal((N, N), (N, N)), hits=False, misses=True, in_place=seed % 4 != 0)
