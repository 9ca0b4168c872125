"""Says which packages this interpreter lacks, one a line, as pip requirements; reads metadata, imports nothing heavy.

    python check_python.py            quick: installed versions only
    python check_python.py --import   also imports torch, which shows a broken installation
"""

import sys
from importlib import metadata

SUPPORTED_TORCH = "2.11."
HEAVY = {"torch": "torch==2.11.0", "torchvision": "torchvision", "transformers": "transformers", "numpy": "numpy"}
LIGHT = {"rich": "rich", "pytest": "pytest"}  # small, and easy to add beside what is there


def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def missing():
    if sys.version_info < (3, 10):
        return ["python>=3.10"]
    lacks = [need for name, need in {**HEAVY, **LIGHT}.items() if version(name) is None]
    torch = version("torch")
    if torch and not torch.startswith(SUPPORTED_TORCH):
        lacks.append(HEAVY["torch"])
    return lacks


def main():
    lacks = missing()
    if "--import" in sys.argv[1:] and not set(lacks) & set(HEAVY.values()):
        try:
            import torch  # noqa: F401
        except Exception as error:  # noqa: BLE001  any failure means: not usable
            print(f"torch cannot be imported: {error}", file=sys.stderr)
            lacks.append(HEAVY["torch"])
    print("\n".join(lacks))


main()
