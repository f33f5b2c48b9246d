"""Generates the Python code of Aptix's protocol into `stubs/` beside this file, from `proto/` of this repository."""

import sys
from importlib import resources
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
PROTO = HERE.parent.parent / "proto"
STUBS = HERE / "stubs"


def main() -> int:
    STUBS.mkdir(exist_ok=True)
    sources = sorted(str(file) for file in PROTO.glob("aptix/v1/*.proto"))
    if not sources:
        print(f"no protocol files in {PROTO / 'aptix/v1'}; run this from a clone of the repository", file=sys.stderr)
        return 1
    well_known = resources.files("grpc_tools") / "_proto"
    out = [f"--python_out={STUBS}", f"--pyi_out={STUBS}", f"--grpc_python_out={STUBS}"]
    return protoc.main(["protoc", f"--proto_path={PROTO}", f"--proto_path={well_known}", *out, *sources])


if __name__ == "__main__":
    sys.exit(main())
