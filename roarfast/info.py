"""What `roarfast info` shows: version, build, SIMD level, threads, CUDA, what studies would use, optional packages."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
from typing import Any

from roarfast import _backend
from roarfast._extras import OPTIONAL_PACKAGES, installed
from roarfast._torchvision import library_problem
from roarfast._version import __version__


def _build_info(module: Any) -> dict[str, str]:
    return dict(line.split("=", 1) for line in module.build_info().splitlines())


def _cuda_devices() -> list[str]:
    """Names of the CUDA devices, as torch sees them; empty without torch or without a driver."""
    try:
        import torch
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]


def _package_versions() -> dict[str, str | None]:
    return {name: installed(name) for name in OPTIONAL_PACKAGES}


def _torchvision_problem() -> str | None:
    """Why torchvision's compiled ops do not work beside this torch, if they do not."""
    try:
        return library_problem()
    except ImportError:
        return None


def _studies(devices: list[str]) -> dict[str, Any]:
    """What `roarfast run` uses here if neither the command nor the config says otherwise."""
    workers = len(devices) or _backend.available_cores()
    return {"workers": workers, "threads": 1, "device": "cuda" if devices else "cpu", "ray": installed("ray")}


def gather() -> dict[str, Any]:
    """Everything `roarfast info` shows, as plain values for JSON."""
    kernels = _backend.cpu()
    build = _build_info(kernels)
    cuda: dict[str, Any] = {"built": _backend.cuda_is_built(), "devices": _cuda_devices()}
    if cuda["built"]:
        cuda.update(_build_info(_backend.cuda()))
    else:
        cuda["reason"] = _backend.why_no_cuda()
    return {
        "version": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "numpy": importlib.metadata.version("numpy"),
        "cpu": {
            "compiler": build["compiler"],
            "threading": build["threading"],
            "simd": kernels.backend_name().removeprefix("cpu-"),
            "simd_built": _backend.built_simd_levels(),
            "threads": _backend.get_num_threads(),
            "cores": _backend.available_cores(),
        },
        "cuda": cuda,
        "studies": _studies(cuda["devices"]),
        "packages": _package_versions(),
        "torchvision_problem": _torchvision_problem(),
    }


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("es" if what.endswith("s") else "s") * (number != 1)


def render(info: dict[str, Any]) -> str:
    """The same for people."""
    cpu, cuda = info["cpu"], info["cuda"]
    built = f"built for {cuda['architectures']} ({cuda['compiler']})" if cuda["built"] else cuda["reason"]
    present = [f"{name} {version}" for name, version in info["packages"].items() if version]
    missing = [name for name, version in info["packages"].items() if not version]
    threads_from = (
        "ROARFAST_NUM_THREADS"
        if os.environ.get("ROARFAST_NUM_THREADS")
        else "torch"
        if sys.modules.get("torch")
        else "cores"
    )
    studies = info["studies"]
    where = (
        f" on the CPU, {_count(studies['threads'], 'thread')} each" if studies["device"] == "cpu" else ", one per GPU"
    )
    pools = f"{_count(studies['workers'], 'worker process')}{where} (set with --workers, run.threads); "
    pools += f"Ray {studies['ray']} with --ray" if studies["ray"] else "--ray needs ray, which is not installed"
    rows = [
        ("roarfast", info["version"]),
        ("python", f"{info['python']}, numpy {info['numpy']}, {info['platform']}"),
        ("compiler", cpu["compiler"]),
        ("SIMD", f"{cpu['simd']} (built: {', '.join(cpu['simd_built'])}; set with ROARFAST_SIMD)"),
        (
            "threads",
            f"{cpu['threads']} of {cpu['cores']} cores, in a pool that the kernels share "
            f"(from {threads_from}; set with ROARFAST_NUM_THREADS)",
        ),
        ("CUDA", built),
        ("devices", ", ".join(cuda["devices"]) or "none seen"),
        ("studies", pools if info["packages"]["torch"] else "not without torch"),
        ("packages", ", ".join(present) or "none"),
        ("not installed", ", ".join(missing) or "none"),
    ]
    if info.get("torchvision_problem"):
        rows.append(("note", info["torchvision_problem"]))
    return "\n".join(f"{label:<14} {text}" for label, text in rows)


def show(as_json: bool) -> None:
    """Prints what was built and what runs here."""
    facts = gather()
    print(json.dumps(facts, indent=2) if as_json else render(facts))
