#!/usr/bin/env python3
"""Checks the order of the layers on every #include line of the tree.

    check_layers.py [ROOT]

A file includes its own layer and lower ones only:

    base < plan < backend < pool < eager < torch      graph: base, plan, pool      capture: all but eager
    entry: everything

Headers of torch (torch, ATen, c10) and of CUDA are for allocator/torch, graph_capture/torch and entry only.
Files under tests/ may include anything. Prints `file:line: message`; exits with 1 where a rule is broken.
"""

import re
import sys
from pathlib import Path, PurePosixPath

# A layer, and the layers that it may include beside itself.
ALLOWED = {
    "base": set(),
    "plan": {"base"},
    "backend": {"base", "plan"},
    "pool": {"base", "plan", "backend"},
    "eager": {"base", "plan", "backend", "pool"},
    "torch": {"base", "plan", "backend", "pool", "eager"},
    "graph": {"base", "plan", "pool"},
    "capture": {"base", "plan", "backend", "pool", "torch", "graph"},
    "entry": {"base", "plan", "backend", "pool", "eager", "torch", "graph", "capture"},
}
# The longest matching folder decides.
FOLDERS = {
    "allocator/base": "base",
    "allocator/plan": "plan",
    "allocator/backend": "backend",
    "allocator/pool": "pool",
    "eager": "eager",
    "allocator/torch": "torch",
    "graph_capture": "graph",
    "graph_capture/torch": "capture",
    "entry": "entry",
}
CHECKED = ("allocator", "eager", "graph_capture", "entry")
SEES_TORCH = {"torch", "capture", "entry"}
SOURCES = {".h", ".hh", ".hpp", ".inl", ".ipp", ".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh"}

INCLUDE = re.compile(r'^\s*#\s*(?:include|include_next|import)\s*(?:<([^>]+)>|"([^"]+)"|(\S.*))')
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FOREIGN = re.compile(r"^(torch|ATen|c10|caffe2|cuda)/|^(cuda|cublas|cudnn|cusparse|cusolver|nccl|nvml|nvrtc|nvToolsExt|"
                     r"driver_types|driver_functions|vector_types)\w*\.h$")


def layer_of(path):
    """The layer of a file by its folder, or None."""
    for parent in path.parents:
        if str(parent) in FOLDERS:
            return FOLDERS[str(parent)]
    return None


def layer_of_header(name):
    """The layer that `livepool/...` names: the folder after livepool/, or entry for livepool/x.h itself."""
    parts = PurePosixPath(name).parts
    return "entry" if len(parts) == 2 else parts[1]


def included_layer(root, path, name, quoted):
    """The layer of an include: by its name under livepool/, or, for "x.h", by the file beside the includer."""
    if name.startswith("livepool/"):
        return layer_of_header(name)
    if quoted:
        beside = (root / path.parent / name).resolve()
        if beside.is_file() and beside.is_relative_to(root):
            return layer_of(PurePosixPath(beside.relative_to(root).as_posix()))
    return None


def check_place(path, layer):
    """A header lies in the folder of the layer that its include path names."""
    parts = path.parts
    if "include" in parts:
        name = "/".join(parts[parts.index("include") + 1:])
        if name.startswith("livepool/") and layer_of_header(name) != layer:
            yield f"<{name}> is by its name of layer {layer_of_header(name)}, but lies in the folder of {layer}"


def check_include(root, path, layer, match):
    angle, quote, other = match.groups()
    if other:
        yield f"#include {other.strip()} cannot be checked: name the header itself"
        return
    name = angle or quote
    if FOREIGN.match(name):
        if layer not in SEES_TORCH:
            yield f"layer {layer} includes <{name}>, but only the two torch folders and entry include torch or CUDA"
        return
    target = included_layer(root, path, name, quote is not None)
    if target is None or target == layer:
        return
    if target not in ALLOWED:
        yield f"<{name}> is of no known layer ({', '.join(ALLOWED)})"
    elif target not in ALLOWED[layer]:
        yield f"layer {layer} includes <{name}> of layer {target}"


def check_file(root, path):
    """Pairs of line and message for one file; `path` is relative to `root`."""
    layer = layer_of(path)
    if layer is None:
        yield 1, "is in no layer's folder"
        return
    for message in check_place(path, layer):
        yield 1, message
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    text = BLOCK_COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            for message in check_include(root, path, layer, match):
                yield number, message


def sources(root):
    for folder in CHECKED:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SOURCES and file.is_file():
                yield PurePosixPath(file.relative_to(root).as_posix())


def main(argv):
    root = Path(argv[0] if argv else Path(__file__).parents[1]).resolve()
    files = list(sources(root))
    if not files:
        print(f"{root}: no source files under {', '.join(CHECKED)}")
        return 1
    broken = 0
    for path in files:
        for number, message in check_file(root, path):
            print(f"{path}:{number}: {message}")
            broken += 1
    print(f"{len(files)} files checked, {broken} violations")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
