"""Where figures come from: the machine and the versions."""

import platform

import torch


def describe(device):
    """For the JSON; texts, and None where something is not there."""
    import livepool

    return {"device": device, "machine": torch.cuda.get_device_name() if device == "cuda" else _processor(), "torch": torch.__version__,
            "cuda": torch.version.cuda if device == "cuda" else None, "python": platform.python_version(),
            "livepool": livepool.__version__}


def one_line(environment):
    cuda = f", CUDA {environment['cuda']}" if environment["cuda"] else ""
    return (f"{environment['machine']}; torch {environment['torch']}{cuda}, Python {environment['python']}, "
            f"livepool {environment['livepool']}")


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return f"{line.split(':', 1)[1].strip()}, {torch.get_num_threads()} threads"
    except OSError:
        pass
    return platform.processor() or platform.machine()
