"""The options of `livepool bench`, and the request that they make."""

import argparse
import os
from dataclasses import dataclass

DESCRIPTION = """\
Run each model three ways with random weights (nothing is downloaded): eager, captured, and replayed from one
planned arena. Prints one table with the memory and time of both, and whether the replay's results are bit for bit
those of eager on two inputs that were not captured."""

EPILOG = """\
models:
  models of torchvision by their names there (resnet50, vit_l_16, deeplabv3_resnet50, r3d_18), models of Hugging Face
  transformers made from a config (bert, gpt2, llama, llama1b, t5, mixtral, ...), and gru, lstm, unet.
  NAME@BATCH and NAME@BATCHxLENGTH set a model's own batch size and number of tokens: vit_l_16@32, bert@32x128.
  baseline: the fourteen models of docs/benchmarks.md at their shapes      zoo: one model of each family

  Detectors run too. One that cannot be captured is called through wrap(), which runs it as it is; the table says why.

exit code:
  0  every result is bit for bit equal     1  a result differs or a model failed     2  the command line is wrong

environment:
  LIVEPOOL_FILL=nan           the same as --poison
  LIVEPOOL_CHECK=first|every:N|off   livepool's own check of replays against eager"""

LATENCY_DESCRIPTION = """\
Time one call of each model: eager, replayed op by op, launched as a CUDA graph (fresh outputs, and outputs in the
arena), and through torch.cuda.graph. All ways take turns in one process; random weights, nothing is downloaded."""

MEMORY_DESCRIPTION = """For each model: what eager has alive at its peak, the arena that its replay needs, and what a process holds for
transients (outputs and workspaces included), with PyTorch's allocator and with livepool, a process each. Prints a
Markdown table with geometric means; random weights, nothing is downloaded."""

BATCH_DESCRIPTION = """For each model the largest batch that runs under a memory limit, with PyTorch's allocator and with livepool, found by
bisection in processes of their own. Prints a Markdown table; random weights, nothing is downloaded."""

SHAPES_DESCRIPTION = """For each model many shapes in turns in one process: the arena against the largest plan, and what is held after each
round. Models are written NAME@BATCHESxLENGTHS, as llama1b@1,2,4x128,256; the length of an image is its side. Prints a
Markdown table; random weights, nothing is downloaded."""

DEFAULT_MODELS = ("resnet50", "vit_b_16", "convnext_tiny", "swin_t", "bert", "llama")
DEFAULT_BATCH = {"cpu": 1, "cuda": 32}
DEFAULT_DTYPE = {"cpu": "fp32", "cuda": "fp16"}
DTYPES = ("fp32", "fp16", "bf16")


class BadOption(ValueError):
    """The command line asks for something that cannot be; the message is one line."""


@dataclass(frozen=True)
class Request:
    device: str
    models: tuple
    batch: int
    dtype: str
    json_path: str | None


def positive_int(text):
    value = int(text) if text.lstrip("-").isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return value


def bytes_of(text):
    from livepool import _livepool

    value = _livepool.parse_bytes(text)
    if not value or value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no size: use a number of bytes, or one such as 8GiB or 512MiB")
    return value


def share(text):
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number in [0, 1)")
    return value


def add_common(parser, batch_help, default_models=DEFAULT_MODELS, separator=","):
    """batch_help: None for no option --batch."""
    parser.add_argument("--device", choices=("cpu", "cuda", "auto"), default="auto",
                        help="where to run; auto takes cuda where there is a device, else cpu (default: auto)")
    parser.add_argument("--models", metavar="A,B,...", default=separator.join(default_models),
                        help=f"models to run, separated by {'commas' if separator == ',' else 'blanks'} (default: %(default)s)")
    if batch_help:
        parser.add_argument("--batch", metavar="N", type=positive_int, help=batch_help)
    parser.add_argument("--dtype", choices=DTYPES,
                        help="type of weights and images (default: fp16 on cuda, fp32 on cpu)")
    parser.add_argument("--json", metavar="FILE", dest="json_path", help="write the figures to FILE, too")


def add_outputs(parser):
    parser.add_argument("--outputs", choices=("fresh", "arena"), default="fresh",
                        help="where replays leave their outputs (default: fresh)")


def add_to_memory(parser):
    add_common(parser, "batch size where the name of a model has none (default: 32 on cuda, 1 on cpu)", ("baseline",))
    add_outputs(parser)


def add_to_batch(parser):
    from livepool.bench.batch import DEFAULT_MODELS as models

    add_common(parser, None, models)
    add_outputs(parser)
    parser.add_argument("--limit", metavar="SIZE", type=bytes_of, default="8GiB", help="bytes, as 8GiB (default: 8GiB)")
    parser.add_argument("--since", choices=("start", "steady"), default="start",
                        help="the limit holds from the start of the process, or after its warm-up, which for livepool is the "
                        "capture with its eager run (default: start)")
    parser.add_argument("--first", metavar="N", type=positive_int, default=64, help="the batch to try first (default: 64)")
    parser.add_argument("--most", metavar="N", type=positive_int, default=8192, help="the largest batch to try (default: 8192)")
    parser.add_argument("--resolution", metavar="SHARE", type=share, default=0.02,
                        help="how far below the true answer the found one may be (default: 0.02)")


def add_to_shapes(parser):
    from livepool.bench.shapes import DEFAULT_MODELS as models

    add_common(parser, None, models, " ")
    add_outputs(parser)



def add_to(parser):
    add_common(parser, "batch size (default: 32 on cuda, 1 on cpu)")
    parser.add_argument("--poison", action="store_true",
                        help="fill each slot with NaN at its death, so that a read after death shows in the result")


def resolve(args):
    """Checks what argparse cannot, and fills in what depends on the device."""
    from livepool.bench import model_sets, models, shapes

    if args.command == "shapes":
        names = bare = tuple(dict.fromkeys(args.models.split()))
    else:
        names = bare = model_sets.expand(name.strip() for name in args.models.split(",") if name.strip())
    if not names:
        raise BadOption("argument --models: no model is named")
    try:
        if args.command == "shapes":
            bare = [shapes.parse(name)[0] for name in names]
        for name in bare:
            models.check_name(name)
    except (models.UnknownModel, shapes.BadShapes) as error:
        raise BadOption(f"argument --models: {error}") from None
    json_path = args.json_path
    if json_path:
        folder = os.path.dirname(os.path.abspath(json_path))
        if os.path.isdir(json_path) or not os.access(folder, os.W_OK):
            raise BadOption(f"argument --json: '{json_path}' cannot be written")
    device = choose_device(args.device)
    return Request(device, names, getattr(args, "batch", None) or DEFAULT_BATCH[device], args.dtype or DEFAULT_DTYPE[device],
                   json_path)


def choose_device(wanted):
    import torch

    has_cuda = torch.cuda.is_available()
    if wanted == "cuda" and not has_cuda:
        raise BadOption("argument --device: torch sees no CUDA device here")
    return wanted if wanted != "auto" else "cuda" if has_cuda else "cpu"
