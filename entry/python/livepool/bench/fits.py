"""Whether a model runs at a batch size under a memory limit; `python -m livepool.bench.fits` prints one JSON line.

The limit holds for weights, inputs and everything else that PyTorch and livepool allocate. On CUDA it is PyTorch's own
(a fraction of the device's memory) or livepool's; on the CPU it is the system's, for what the process adds to its data.
"""

import json
import resource
import sys

import torch

from livepool.bench import held, meter, models, process

PASSES = 3
SAYS_SO = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory", "bad_alloc")


def set_limit(mode, device, limit):
    """From now on no more than `limit` bytes."""
    if device == "cpu":
        with open("/proc/self/status", encoding="ascii") as file:
            data = next(int(line.split()[1]) for line in file if line.startswith("VmData:")) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (data + limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    elif mode == "livepool":
        import livepool

        livepool.set_memory_limit(limit)
    else:
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / torch.cuda.get_device_properties(0).total_memory))


def out_of_memory(error):
    """Also what the host's allocators say, for which torch has no type of its own."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or any(text in str(error).lower() for text in SAYS_SO)


@torch.no_grad()
def fits(args):
    if args.mode == "livepool":
        import livepool

        livepool.install(device=args.device)
    memory = meter.make(args.device)
    if args.since == "start":
        set_limit(args.mode, args.device, args.limit)
    try:
        work = models.build(args.model, args.device, args.dtype, args.batch)
        captured, steady = work.inputs(0), work.inputs(1)
        one_pass, _ = held.prepare(args.mode, work.model, captured, args.outputs)
        one_pass(**steady)  # livepool's check of the first replay
        del captured
        if args.since == "steady":
            memory.settle()
            set_limit(args.mode, args.device, args.limit)
        for _ in range(PASSES):
            one_pass(**steady)
        if args.device == "cuda":
            torch.cuda.synchronize()
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        return False
    return args.since == "start" or args.device == "cpu" or memory.now() <= args.limit


def main(argv=None):
    parser = process.parser("fits", __doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--limit", type=int, required=True, help="bytes")
    parser.add_argument("--since", choices=("start", "steady"), default="start")
    args = parser.parse_args(argv)
    print(json.dumps({"fits": fits(args)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
