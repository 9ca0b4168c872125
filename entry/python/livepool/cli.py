"""The `livepool` command: parses the command line, then forwards.

Exit codes: 0 all is well, 1 a result differs or a model failed, 2 the command line is wrong.
"""

import argparse
import sys

from livepool import restart


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage text, and exits with 2."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message} ({self.prog} --help shows the options)\n")


def build_parser():
    from livepool.bench import options

    parser = OneLineParser(prog="livepool", description="Planned memory for PyTorch inference.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    bench = commands.add_parser(
        "bench",
        help="run models from a planned arena, beside eager PyTorch",
        description=options.DESCRIPTION,
        epilog=options.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_to(bench)
    latency = commands.add_parser(
        "latency",
        help="time one call: eager, replay, CUDA graph, torch.cuda.graph",
        description=options.LATENCY_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_common(latency, "batch size (default: 1)")
    commands.add_parser("run", help="run a Python program, its eager code served from plans (livepool run --help)")
    tables = {
        name: commands.add_parser(name, help=says, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        for name, says, description in (
            ("memory", "table: the arena, and what a process holds, beside PyTorch's allocator", options.MEMORY_DESCRIPTION),
            ("batch", "table: the largest batch under a memory limit", options.BATCH_DESCRIPTION),
            ("shapes", "table: many shapes on one arena", options.SHAPES_DESCRIPTION),
        )
    }
    options.add_to_memory(tables["memory"])
    options.add_to_batch(tables["batch"])
    options.add_to_shapes(tables["shapes"])
    commands.add_parser("info", help="show versions, devices and whether the allocator is installed",
                        description="Show versions, devices and whether the allocator is installed.")
    return parser, {"bench": bench, "latency": latency, **tables}


def resolve(parser, args):
    """The request; ends with exit code 2 and one line if there is something wrong with it."""
    from livepool.bench import options

    try:
        return options.resolve(args)
    except options.BadOption as error:
        parser.error(str(error))


def run_bench(parser, args, argv):
    if args.poison:
        restart.unless_set({"LIVEPOOL_FILL": "nan"}, argv)
    request = resolve(parser, args)
    from livepool.bench import run

    return run.run(request)


def run_latency(parser, args):
    from livepool.bench import latency

    args.batch = args.batch or 1
    return latency.run(resolve(parser, args))


def run_table(parser, args):
    from livepool.bench import batch, memory, shapes

    request = resolve(parser, args)
    if args.command == "memory":
        return memory.run(request, args.outputs)
    if args.command == "shapes":
        return shapes.run(request, args.outputs)
    return batch.run(request, args.outputs, args.limit, args.since, args.first, args.most, args.resolution)


def run_info():
    import platform

    import torch

    import livepool

    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    cuda = f"torch is built with CUDA {torch.version.cuda}, " if torch.version.cuda else "torch is built without CUDA, "
    print(f"livepool   {getattr(livepool, '__version__', 'unknown')}")
    print(f"torch      {torch.__version__}")
    print(f"python     {platform.python_version()}")
    print(f"installed  {'yes' if livepool.stats()['active'] else 'no'}, in this process")
    print("cpu        supported")
    print(f"cuda       {cuda}{'devices: ' + ', '.join(devices) if devices else 'no device here'}")
    return 0


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == ["run"]:  # its arguments are the program's
        from livepool import run

        return run.run(argv[1:])
    parser, parsers = build_parser()
    args = parser.parse_args(argv)
    try:
        if args.command == "bench":
            return run_bench(parsers["bench"], args, argv)
        if args.command == "latency":
            return run_latency(parsers["latency"], args)
        return run_info() if args.command == "info" else run_table(parsers[args.command], args)
    except KeyboardInterrupt:
        print("livepool: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
