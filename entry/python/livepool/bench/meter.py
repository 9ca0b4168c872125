"""How much memory the process has taken for tensors."""

import gc

import torch


class CudaMeter:
    """Reserved by PyTorch's allocator; livepool's counts the arenas in."""

    def resident(self, tensors):
        """What does not count as held, once the model and its inputs are there: `tensors` is their bytes."""
        return tensors

    def settle(self):
        """Gives back all that no tensor uses."""
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def reset_peak(self):
        torch.cuda.reset_peak_memory_stats()

    def peak(self):
        torch.cuda.synchronize()
        return torch.cuda.max_memory_reserved()

    def now(self):
        torch.cuda.synchronize()
        return torch.cuda.memory_reserved()

    def driver_used(self):
        free, total = torch.cuda.mem_get_info()
        return total - free


class HostMeter:
    """The resident set of the process. Whatever is touched is in it, the code that a first pass loads too, so small figures
    mean little."""

    def resident(self, tensors):
        return self.now()

    def settle(self):
        gc.collect()

    def reset_peak(self):
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def peak(self):
        return self._status("VmHWM")

    def now(self):
        return self._status("VmRSS")

    @staticmethod
    def _status(key):
        with open("/proc/self/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith(key + ":"))
        return int(line.split()[1]) * 1024


def make(device):
    return CudaMeter() if device == "cuda" else HostMeter()
