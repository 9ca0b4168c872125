"""A program that knows nothing of livepool, and does a bit of everything: models, shapes, branches, results that are
kept, training, exceptions, generators, threads. Prints one digest for each part, of every byte that it computed.

    mixed_program.py [ROUNDS]      default 60
"""

from __future__ import annotations

import functools
import hashlib
import random
import sys
import threading

import torch
from torch import nn


class Part:
    """What a part draws from, and what it has computed. The default generator is not used: threads share it."""

    def __init__(self, rounds, seed):
        self.rounds = rounds
        self.choose = random.Random(seed)
        self.rand = functools.partial(torch.rand, generator=torch.Generator().manual_seed(seed))
        self._hash = hashlib.sha256()

    def fixed(self, model):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_((self.rand(parameter.shape) - 0.5) / 3)
        return model

    def add(self, *tensors):
        for each in tensors:
            self._hash.update(each.detach().contiguous().numpy().tobytes())

    def digest(self):
        return self._hash.hexdigest()[:16]


@torch.inference_mode()
def classify(part):
    """Shapes at random, a branch now and then, each seventh result is kept for a while."""
    layers = [nn.Sequential(nn.Conv2d(c, d, 3, padding=1), nn.BatchNorm2d(d), nn.ReLU())
              for c, d in [(3, 8), (8, 8), (8, 16), (16, 16)]]
    model = part.fixed(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)).eval())
    kept = []
    for i in range(part.rounds):
        x = part.rand(part.choose.choice([1, 2, 4]), 3, part.choose.choice([16, 24, 32]), 24)
        y = model(x)
        if part.choose.random() < 0.2:
            y = y + model(x.flip(-1))
        scores = y.softmax(-1)
        best = scores.argmax(-1)
        part.add(y, scores, best)
        if i % 7 == 0:
            kept.append(y)
        if len(kept) == 4:
            part.add(*kept)
            kept.clear()
    part.add(*kept)


@torch.no_grad()
def recur(part):
    """All in the loop's own frame, and of two lengths."""
    w, u = part.rand(32, 32) / 16, part.rand(32, 32) / 16
    for _ in range(part.rounds):
        h = torch.zeros(4, 32)
        for _ in range(part.choose.choice([20, 20, 25])):
            h = torch.tanh(part.rand(4, 32) @ w + h @ u)
        part.add(h)


def train(part):
    model = part.fixed(nn.Sequential(nn.Linear(20, 40), nn.GELU(), nn.Linear(40, 40), nn.GELU(), nn.Linear(40, 3)))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(part.rounds):
        optimizer.zero_grad()
        loss = model(part.rand(part.choose.choice([8, 16]), 20)).square().mean()
        loss.backward()
        optimizer.step()
        part.add(loss)
    part.add(*model.parameters())


@torch.no_grad()
def fail(part):
    """A pass ends by an exception now and then, somewhere in the middle."""
    layers = part.fixed(nn.ModuleList([nn.Linear(24, 24) for _ in range(16)]).eval())

    def run(x, fails_at):
        for i, layer in enumerate(layers):
            x = torch.relu(layer(x)) + x
            if i == fails_at:
                raise ValueError(i)
        return x

    for _ in range(part.rounds):
        try:
            part.add(run(part.rand(8, 24), part.choose.choice([3, 9, 99, 99, 99, 99])))
        except ValueError as error:
            part.add(torch.tensor(error.args[0]))


@torch.no_grad()
def decode(part):
    """A cache that grows, and a generator that is left half way."""
    block = part.fixed(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval())

    def tokens(length):
        cache = part.rand(1, 1, 32)
        for _ in range(length):
            cache = torch.cat([cache, block(cache)[:, -1:]], 1)
            yield cache

    for _ in range(part.rounds):
        stop = part.choose.choice([5, 12, 12])
        for i, cache in enumerate(tokens(12)):
            if i == stop:
                break
        part.add(cache)


def main(argv):
    rounds = int(argv[1]) if len(argv) > 1 else 60
    torch.set_num_threads(1)
    for seed, work in enumerate([classify, recur, train, fail, decode]):
        part = Part(rounds, seed)
        work(part)
        print(work.__name__, part.digest(), flush=True)
    for turn in range(2):  # the second time other threads free what the first ones have made
        parts = [Part(rounds, 10 + seed) for seed in range(4)]
        results = []

        def run(part, work):
            work(part)
            results.append(part.rand(1000))  # noqa: B023  (used in this turn only)

        threads = [threading.Thread(target=run, args=each) for each in zip(parts, [classify, recur, fail, decode])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("threads", turn, *[part.digest() for part in parts], sum(each.sum().item() > 0 for each in results))


if __name__ == "__main__":
    main(sys.argv)
