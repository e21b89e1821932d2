"""Which nvcc a build takes and what it compiles for, with stubs for nvcc and nvidia-smi."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import cuda_toolkit  # noqa: E402

PATH = "/usr/bin:/bin"
NEW, OLD = (75, 80, 86, 90, 100, 120), (50, 70, 75, 80, 86)


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def stub_nvcc(home: Path, known: tuple[int, ...] = NEW, release: str = "12.8") -> Path:
    listing = " ".join(f"compute_{n}" for n in known)
    return program(
        home / "bin" / "nvcc",
        f'case "$1" in --version) echo "Cuda compilation tools, release {release}, V{release}.1";; '
        f'--list-gpu-arch) printf "%s\\n" {listing};; esac',
    )


def stub_gpus(home: Path, text: str) -> str:
    program(home / "smi" / "nvidia-smi", f'printf "{text}"')
    return f"{home}/smi:{PATH}"


def decide(environment: dict[str, str]) -> tuple[cuda_toolkit.Toolkit, list[str]]:
    return cuda_toolkit.decide({"PATH": PATH, **environment})


@pytest.fixture(autouse=True)
def _no_real_toolkit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    defaults = (*(cuda_toolkit.find_nvcc.__defaults__ or ())[:-1], (f"{tmp_path}/usual/cuda",))
    monkeypatch.setattr(cuda_toolkit.find_nvcc, "__defaults__", defaults)


def test_order_of_places(tmp_path: Path) -> None:
    homes = {name: stub_nvcc(tmp_path / name) for name in ("cxx", "home", "path", "onpath")}
    usual = stub_nvcc(tmp_path / "usual" / "cuda-12.8")
    stub_nvcc(tmp_path / "usual" / "cuda-9.2")
    environment = {
        "CUDACXX": str(homes["cxx"]),
        "CUDA_HOME": str(tmp_path / "home"),
        "CUDA_PATH": str(tmp_path / "path"),
        "PATH": f"{tmp_path}/onpath/bin:{PATH}",
    }
    for name, expected in (("CUDACXX", "cxx"), ("CUDA_HOME", "home"), ("CUDA_PATH", "path"), ("PATH", "onpath")):
        assert cuda_toolkit.find_nvcc(environment).nvcc == homes[expected]
        del environment[name]
    assert cuda_toolkit.find_nvcc({"PATH": PATH}).nvcc == usual
    first = stub_nvcc(tmp_path / "usual" / "cuda")
    assert cuda_toolkit.find_nvcc({"PATH": PATH}).nvcc == first


def test_without_nvcc_the_reason_names_what_was_set(tmp_path: Path) -> None:
    toolkit, architectures = decide({"CUDA_HOME": str(tmp_path)})
    assert toolkit.nvcc is None and architectures == []
    assert f"CUDA_HOME={tmp_path} has no bin/nvcc" in toolkit.reason
    with pytest.raises(SystemExit, match="ROARFAST_CUDA=on, but no nvcc on PATH"):
        decide({"ROARFAST_CUDA": "on"})
    with pytest.raises(SystemExit, match="must be auto, on or off, got 'maybe'"):
        decide({"ROARFAST_CUDA": "maybe"})
    assert decide({"ROARFAST_CUDA": "off"})[0].reason == "ROARFAST_CUDA=off when it was built"


def test_an_nvcc_that_is_too_old_or_broken_is_a_reason(tmp_path: Path) -> None:
    stub_nvcc(tmp_path / "old", OLD, "11.5")
    assert "is CUDA 11.5; 11.8 is the oldest" in decide({"CUDA_HOME": f"{tmp_path}/old"})[0].reason
    program(tmp_path / "broken" / "bin" / "nvcc", "exit 3")
    assert "does not run" in decide({"CUDA_HOME": f"{tmp_path}/broken"})[0].reason
    program(tmp_path / "mute" / "bin" / "nvcc", "echo hello")
    assert "does not say its version" in decide({"CUDA_HOME": f"{tmp_path}/mute"})[0].reason


@pytest.mark.parametrize(
    ("environment", "known", "chosen"),
    [
        ({}, NEW, ["80"]),
        ({"ROARFAST_CUDA_ARCHS": "80-real;90"}, NEW, ["80-real", "90"]),
        ({"ROARFAST_CUDA_ARCHS": "all"}, NEW, ["75-real", "80-real", "90-real", "100-real", "120"]),
        ({"ROARFAST_CUDA_ARCHS": "all"}, OLD, ["75-real", "80"]),  # PTX moves to the newest that is left
        ({"TORCH_CUDA_ARCH_LIST": "8.0;8.6+PTX"}, NEW, ["80-real", "86"]),
        ({"TORCH_CUDA_ARCH_LIST": "7.5 9.0a Hopper"}, NEW, ["75-real", "90a-real", "90"]),
        ({"TORCH_CUDA_ARCH_LIST": "Turing;Ampere"}, NEW, ["75", "80-real", "86"]),
        ({"CUDAARCHS": "86"}, NEW, ["86"]),
        ({"ROARFAST_CUDA_ARCHS": "75", "TORCH_CUDA_ARCH_LIST": "8.0"}, NEW, ["75"]),
        ({"TORCH_CUDA_ARCH_LIST": "8.0;9.0"}, OLD, ["80"]),
    ],
)
def test_architectures(tmp_path: Path, environment: dict[str, str], known: tuple[int, ...], chosen: list[str]) -> None:
    stub_nvcc(tmp_path / "home", known)
    toolkit, architectures = decide({"CUDA_HOME": f"{tmp_path}/home", **environment})
    assert architectures == chosen, toolkit


def test_unknown_architectures_are_named_and_left_out(tmp_path: Path) -> None:
    stub_nvcc(tmp_path, OLD)
    toolkit, architectures = decide({"CUDA_HOME": str(tmp_path), "ROARFAST_CUDA_ARCHS": "80-real;90"})
    assert architectures == ["80"]
    assert toolkit.messages == ["architecture 90 (ROARFAST_CUDA_ARCHS) left out: CUDA 12.8 knows 50 to 86"]
    toolkit, architectures = decide({"CUDA_HOME": str(tmp_path), "ROARFAST_CUDA_ARCHS": "120"})
    assert toolkit.nvcc is None and "left out" in toolkit.reason and architectures == []
    for name, bad in (("ROARFAST_CUDA_ARCHS", "sm_80"), ("TORCH_CUDA_ARCH_LIST", "8")):
        with pytest.raises(SystemExit, match=f"{name}: '{bad}' is not an architecture"):
            decide({"CUDA_HOME": str(tmp_path), name: bad})


@pytest.mark.parametrize(
    ("shown", "chosen"),
    [
        ("8.6\\n8.6\\n", ["86-real"]),
        ("12.0\\n", ["86-virtual"]),
        ("7.5\\n8.0\\n", ["75-real", "80-real"]),
        ("no devices\\n", ["80"]),
    ],
)
def test_the_gpus_that_are_there(tmp_path: Path, shown: str, chosen: list[str]) -> None:
    stub_nvcc(tmp_path, OLD)
    assert decide({"CUDA_HOME": str(tmp_path), "PATH": stub_gpus(tmp_path, shown)})[1] == chosen


def test_a_build_says_what_it_does_and_how_to_have_less(tmp_path: Path) -> None:
    stub_nvcc(tmp_path)
    said = cuda_toolkit.announcement(*decide({"CUDA_HOME": str(tmp_path), "ROARFAST_CUDA_ARCHS": "80"}))
    assert f"{tmp_path}/bin/nvcc the CUDA kernels for 80" in said and "ROARFAST_CUDA=off" in said
    said = cuda_toolkit.announcement(*decide({"ROARFAST_CUDA": "off"}))
    assert "no CUDA (ROARFAST_CUDA=off when it was built)" in said
    assert "no nvcc on PATH" in cuda_toolkit.announcement(*decide({}))
