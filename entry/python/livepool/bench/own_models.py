"""Small models of our own, of kinds that neither torchvision nor transformers has: recurrent nets, a U-Net."""

import torch
from torch import nn

LENGTH = 64  # steps, where the name says no other
WIDTH = 128  # features of each step
IMAGE_SIZE = 128


class Recurrent(nn.Module):
    """Two layers, both directions, and a head on the last step."""

    def __init__(self, kind):
        super().__init__()
        self.net = kind(WIDTH, 2 * WIDTH, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(4 * WIDTH, 10)

    def forward(self, steps):
        return self.head(self.net(steps)[0][:, -1])


class UNet(nn.Module):
    """Three levels down and up with skip connections (Ronneberger et al. 2015): long lifetimes across the net."""

    def __init__(self, widths=(32, 64, 128)):
        super().__init__()
        self.down = nn.ModuleList(self._block(a, b) for a, b in zip((3, *widths), widths))
        self.bottom = self._block(widths[-1], 2 * widths[-1])
        self.widen = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, stride=2) for width in reversed(widths))
        self.up = nn.ModuleList(self._block(2 * width, width) for width in reversed(widths))
        self.head = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def _block(narrow, wide):
        return nn.Sequential(nn.Conv2d(narrow, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU(),
                             nn.Conv2d(wide, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU())

    def forward(self, image):
        skips = []
        for block in self.down:
            image = block(image)
            skips.append(image)
            image = nn.functional.max_pool2d(image, 2)
        image = self.bottom(image)
        for widen, block in zip(self.widen, self.up):
            image = block(torch.cat([widen(image), skips.pop()], 1))
        return self.head(image)


_MAKERS = {"gru": lambda: Recurrent(nn.GRU), "lstm": lambda: Recurrent(nn.LSTM), "unet": UNet}


def names():
    return sorted(_MAKERS)


def build(name):
    """The model, and `inputs(seed, batch, length)`: `length` is that of the sequence, or the side of the image."""
    model = _MAKERS[name]().eval()

    def inputs(seed, batch, length):
        generator = torch.Generator().manual_seed(seed)
        if name == "unet":
            side = length or IMAGE_SIZE
            return {"image": torch.randn(batch, 3, side, side, generator=generator)}
        return {"steps": torch.randn(batch, length or LENGTH, WIDTH, generator=generator)}

    return model, inputs
