"""Which nvcc a build uses and for which architectures: what setup.py asks before it calls CMake.

Found, in this order: `CUDACXX`, `CUDA_HOME`, `CUDA_PATH`, PATH, the usual places of the toolkit. Architectures:
`ROARFAST_CUDA_ARCHS`, `TORCH_CUDA_ARCH_LIST`, `CUDAARCHS`, else those of the GPUs that are there, else 80 with PTX (which
every later GPU compiles for itself at first use). Names an nvcc does not know are left out with a message.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

USUAL_PLACES = ("/usr/local/cuda", "/opt/cuda")
OLDEST_NVCC = (11, 8)
# What wheels are built for: one binary per generation (80 also runs on 86, 87, 89), PTX of the newest for what comes after.
ALL_ARCHITECTURES = ("75-real", "80-real", "90-real", "100-real", "120")
WITHOUT_A_GPU = ("80",)
# The names torch knows; see TORCH_CUDA_ARCH_LIST in torch.utils.cpp_extension.
TORCH_NAMES = {
    "volta": "7.0+PTX",
    "turing": "7.5+PTX",
    "ampere": "8.0;8.6+PTX",
    "ada": "8.9+PTX",
    "hopper": "9.0+PTX",
    "blackwell": "10.0;12.0+PTX",
}


@dataclass
class Toolkit:
    """What was found; without `nvcc`, `reason` says why."""

    nvcc: Path | None = None
    reason: str = ""
    version: tuple[int, int] = (0, 0)
    known: list[int] = field(default_factory=list)  # virtual architectures, 80 for compute_80
    messages: list[str] = field(default_factory=list)


def _output(command: list[str], environment: Mapping[str, str]) -> str:
    """What a command prints; OSError or CalledProcessError if it does not work."""
    return subprocess.run(command, check=True, capture_output=True, text=True, env=dict(environment), timeout=60).stdout


def _newest_version_of(place: str) -> list[str]:
    """/usr/local/cuda-12.8 and the like, newest first."""
    found = Path(place).parent.glob(Path(place).name + "-*")
    return sorted(map(str, found), key=lambda p: [int(n) for n in re.findall(r"\d+", p)], reverse=True)


def find_nvcc(environment: Mapping[str, str], places: tuple[str, ...] = USUAL_PLACES) -> Toolkit:
    """The compiler, its version and the architectures it knows."""
    explicit = environment.get("CUDACXX")
    homes = [(name, environment[name]) for name in ("CUDA_HOME", "CUDA_PATH") if environment.get(name)]
    on_path = shutil.which("nvcc", path=environment.get("PATH", ""))
    candidates = [
        *([explicit] if explicit else []),
        *(f"{home}/bin/nvcc" for _, home in homes),
        *([on_path] if on_path else []),
        *(f"{place}/bin/nvcc" for usual in places for place in (usual, *_newest_version_of(usual))),
    ]
    nvcc = next((p for c in candidates if (p := shutil.which(c, path=environment.get("PATH", "")))), None)
    if nvcc is None:
        set_but_empty = "".join(f"; {name}={home} has no bin/nvcc" for name, home in homes)
        if explicit:
            set_but_empty += f"; CUDACXX={explicit} is not a program"
        return Toolkit(reason=f"no nvcc on PATH, in CUDA_HOME or in {', '.join(places)}{set_but_empty}")
    try:
        version = re.search(r"release (\d+)\.(\d+)", _output([nvcc, "--version"], environment))
        known = sorted({int(n) for n in re.findall(r"compute_(\d+)", _output([nvcc, "--list-gpu-arch"], environment))})
    except (OSError, subprocess.SubprocessError) as error:
        return Toolkit(reason=f"{nvcc} does not run: {error}")
    if version is None or not known:
        return Toolkit(reason=f"{nvcc} does not say its version and architectures")
    release = (int(version[1]), int(version[2]))
    if release < OLDEST_NVCC:
        return Toolkit(
            reason=f"{nvcc} is CUDA {release[0]}.{release[1]}; {OLDEST_NVCC[0]}.{OLDEST_NVCC[1]} is the oldest that works"
        )
    return Toolkit(Path(nvcc), version=release, known=known)


def from_torch_list(text: str) -> list[str]:
    """`8.0;8.6+PTX` as CMake writes it: `80-real`, `86` (binary and PTX)."""
    for name, value in TORCH_NAMES.items():
        text = re.sub(name, value, text, flags=re.IGNORECASE)
    architectures = []
    for part in re.split(r"[;,\s]+", text.strip()):
        match = re.fullmatch(r"(\d+)\.(\d+)([a-z]?)(\+PTX)?", part)
        if match is None:
            raise ValueError(f"TORCH_CUDA_ARCH_LIST: {part!r} is not an architecture such as 8.0 or 9.0+PTX")
        architectures.append(match[1] + match[2] + match[3] + ("" if match[4] else "-real"))
    return list(dict.fromkeys(architectures))


def of_present_gpus(environment: Mapping[str, str]) -> list[int]:
    """Compute capabilities of the GPUs the driver shows, 80 for 8.0."""
    smi = shutil.which("nvidia-smi", path=environment.get("PATH", ""))
    if smi is None:
        return []
    try:
        text = _output([smi, "--query-gpu=compute_cap", "--format=csv,noheader"], environment)
    except (OSError, subprocess.SubprocessError):
        return []  # no driver, or one older than the query
    return sorted({int(a) * 10 + int(b) for a, b in re.findall(r"^\s*(\d+)\.(\d)\s*$", text, re.MULTILINE)})


def _wanted(environment: Mapping[str, str], toolkit: Toolkit) -> tuple[list[str], str]:
    """Architectures as CMake writes them, and where they come from."""
    ours = environment.get("ROARFAST_CUDA_ARCHS", "").strip()
    if ours.lower() == "all":
        return list(ALL_ARCHITECTURES), "ROARFAST_CUDA_ARCHS=all"
    if ours:
        return [a for a in re.split(r"[;,\s]+", ours) if a], "ROARFAST_CUDA_ARCHS"
    if environment.get("TORCH_CUDA_ARCH_LIST", "").strip():
        return from_torch_list(environment["TORCH_CUDA_ARCH_LIST"]), "TORCH_CUDA_ARCH_LIST"
    if environment.get("CUDAARCHS", "").strip():
        return [a for a in re.split(r"[;,\s]+", environment["CUDAARCHS"].strip()) if a], "CUDAARCHS"
    gpus = of_present_gpus(environment)
    if not gpus:
        return list(WITHOUT_A_GPU), "no GPU here"
    # A GPU newer than nvcc compiles the newest PTX that nvcc can write.
    newest = max(toolkit.known)
    return [f"{gpu}-real" if gpu <= newest else f"{newest}-virtual" for gpu in gpus], "the GPU of this machine"


def choose_architectures(environment: Mapping[str, str], toolkit: Toolkit) -> list[str]:
    """What to compile for; what nvcc does not know is left out, with a line in `toolkit.messages`."""
    wanted, source = _wanted(environment, toolkit)
    chosen = []
    for architecture in wanted:
        number = re.fullmatch(r"(\d+)[a-z]?(-real|-virtual)?", architecture)
        if number is None and architecture in ("native", "all", "all-major"):
            chosen.append(architecture)  # CMake's own words
        elif number is None:
            raise ValueError(f"{source}: {architecture!r} is not an architecture such as 80, 80-real or 90-virtual")
        elif int(number[1]) in toolkit.known:
            chosen.append(architecture)
        else:
            toolkit.messages.append(
                f"architecture {architecture} ({source}) left out: CUDA {toolkit.version[0]}.{toolkit.version[1]} "
                f"knows {min(toolkit.known)} to {max(toolkit.known)}"
            )
    if chosen and all(a.endswith("-real") for a in chosen) and len(chosen) < len(wanted):
        chosen[-1] = chosen[-1].removesuffix("-real")  # the PTX for newer GPUs was in what was left out
    return list(dict.fromkeys(chosen))


def decide(environment: Mapping[str, str] = os.environ) -> tuple[Toolkit, list[str]]:
    """Toolkit and architectures for `ROARFAST_CUDA=auto|on|off`; SystemExit with one sentence where `on` cannot be done."""
    mode = environment.get("ROARFAST_CUDA", "").strip().lower() or "auto"
    if mode not in ("auto", "on", "off"):
        raise SystemExit(f"roarfast: ROARFAST_CUDA must be auto, on or off, got {mode!r}")
    if mode == "off":
        return Toolkit(reason="ROARFAST_CUDA=off when it was built"), []
    toolkit = find_nvcc(environment)
    architectures: list[str] = []
    if toolkit.nvcc is not None:
        try:
            architectures = choose_architectures(environment, toolkit)
        except ValueError as error:
            raise SystemExit(f"roarfast: {error}") from None
        if not architectures:
            toolkit = Toolkit(reason="; ".join(toolkit.messages))
    if toolkit.nvcc is None and mode == "on":
        raise SystemExit(f"roarfast: ROARFAST_CUDA=on, but {toolkit.reason}. Set CUDA_HOME, or ROARFAST_CUDA=off.")
    return toolkit, architectures


def announcement(toolkit: Toolkit, architectures: list[str]) -> str:
    """One line before a build: what is compiled, how long it takes, how to have less."""
    if toolkit.nvcc is None:
        return f"compiling the CPU kernels, a minute or two on two cores; no CUDA ({toolkit.reason})"
    return (
        f"compiling the CPU kernels, and with {toolkit.nvcc} the CUDA kernels for {', '.join(architectures)}: a few minutes on "
        "two cores; ROARFAST_CUDA=off leaves CUDA out"
    )
