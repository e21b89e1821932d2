"""Lets modules that are linked here run with an older C library, as manylinux wheels must: `.ci/wheel`.

    python tools/old_glibc.py FOLDER    prints linker flags

A linker binds a symbol to its newest version: exp to GLIBC_2.29, pthread_create to GLIBC_2.34. The folder gets stubs of
libm and libpthread that know only versions up to NEWEST; named first, they win. What static libstdc++ and libgcc take from newer
libraries without an older version is in tools/old_glibc.c. auditwheel then says whether anything was forgotten.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

NEWEST = (2, 28)
SOURCES = {"libm.so.6": ("libm.so.6", r".*"), "libpthread.so.0": ("libc.so.6", r"_*pthread_.*")}
"""Stub → the library here that has its symbols now, and which of them."""


def versions(library: Path) -> dict[str, set[tuple[int, ...]]]:
    """Function → its versions."""
    found: dict[str, set[tuple[int, ...]]] = {}
    listing = subprocess.run(["objdump", "-T", str(library)], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        match = re.search(r"\.text\s+\S+\s+\(?GLIBC_([0-9.]+)\)?\s+(\S+)$", line)
        if match:
            found.setdefault(match[2], set()).add(tuple(map(int, match[1].split("."))))
    return found


def stub(path: Path, library: Path, names: str, compiler: str) -> None:
    """A shared library of empty functions: those that have become newer than NEWEST, in their last version before."""
    chosen: dict[tuple[int, ...], list[str]] = {}
    for name, known in versions(library).items():
        old = [v for v in known if v[:2] <= NEWEST]
        if re.fullmatch(names, name) and old and max(known)[:2] > NEWEST:
            chosen.setdefault(max(old), []).append(name)
    source, script = path.with_suffix(".s"), path.with_suffix(".map")
    every = sorted(name for group in chosen.values() for name in group)
    lines = [f".globl {name}\n.type {name},%function\n{name}:\n" for name in every]
    source.write_text(".text\n" + "".join(lines) + '.section .note.GNU-stack,"",%progbits\n')
    nodes = [
        f"GLIBC_{'.'.join(map(str, v))} {{ {' '.join(f'{n};' for n in sorted(g))} }};\n" for v, g in chosen.items()
    ]
    script.write_text("".join(nodes))
    command = [
        compiler,
        "-shared",
        "-nostdlib",
        f"-Wl,-soname,{path.name}",
        f"-Wl,--version-script={script}",
        "-o",
        path,
        source,
    ]
    subprocess.run(list(map(str, command)), check=True)


def main(folder: Path, compiler: str = "cc") -> None:
    """Makes the stubs and the object, prints the flags."""
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["-Wl,--no-as-needed"]
    for name, (library, names) in SOURCES.items():
        here = subprocess.run(
            [compiler, f"-print-file-name={library}"], check=True, capture_output=True, text=True
        ).stdout
        stub(folder / name, Path(here.strip()), names, compiler)
        flags.append(str(folder / name))
    made = folder / "old_glibc.o"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-O2", "-fPIC", "-fvisibility=hidden", "-c", str(source), "-o", str(made)], check=True)
    print(*flags, made)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
