"""What is not an op: the build, backends, threads, `roarfast info`, and life without torch."""

from __future__ import annotations

import importlib.machinery
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import roarfast as rf
from roarfast import _backend, _extras, info

BLOCK_TORCH = "import sys; sys.modules['torch'] = None\n"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )


def test_import_does_not_import_torch() -> None:
    assert python("import roarfast, sys; assert 'torch' not in sys.modules").returncode == 0


def test_every_filter_works_without_torch() -> None:
    code = BLOCK_TORCH + (
        "import numpy as np, roarfast as rf\n"
        "a = np.ones((2, 5, 6), np.float32)\n"
        "assert rf.gaussian_filter(a, 1).shape == rf.maximum_filter(a, 3).shape == rf.sobel(a).shape == a.shape\n"
        "assert rf.total_variation(a).tolist() == [0, 0]\n"
    )
    result = python(code)
    assert result.returncode == 0, result.stderr


def test_unknown_simd_level_is_an_error() -> None:
    result = python("import roarfast as rf; rf._backend.cpu()", ROARFAST_SIMD="avx9")
    assert "ROARFAST_SIMD must be one of v3, base, got 'avx9'" in result.stderr


def test_threads_follow_the_explicit_setting_then_the_environment_then_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("ROARFAST_NUM_THREADS", raising=False)
    _backend._threads_of_environment.cache_clear()
    assert rf.get_num_threads() == torch.get_num_threads()
    monkeypatch.setenv("ROARFAST_NUM_THREADS", "3")
    _backend._threads_of_environment.cache_clear()
    assert rf.get_num_threads() == 3
    rf.set_num_threads(5)
    assert rf.get_num_threads() == 5
    rf.total_variation(np.zeros((2, 2)))
    assert _backend.cpu().get_num_threads() == 5
    _backend._threads_of_environment.cache_clear()


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_bad_thread_counts(bad: object) -> None:
    with pytest.raises(ValueError, match="threads must be an int from 1 to 1024 or None"):
        rf.set_num_threads(bad)  # type: ignore[arg-type]


def test_info_as_text_and_json() -> None:
    text = subprocess.run([sys.executable, "-m", "roarfast", "info"], capture_output=True, text=True, check=True).stdout
    assert f"roarfast       {rf.__version__}" in text and "SIMD" in text and "CUDA" in text
    facts = json.loads(
        subprocess.run([sys.executable, "-m", "roarfast", "info", "--json"], capture_output=True, check=True).stdout
    )
    assert facts["version"] == rf.__version__
    assert facts["cpu"]["simd"] in facts["cpu"]["simd_built"]
    assert facts["cuda"]["built"] == _backend.cuda_is_built()


def test_info_says_what_a_study_would_use() -> None:
    pytest.importorskip("pydantic")
    pytest.importorskip("torch")
    from roarfast.study.environment import choose_devices
    from roarfast.study.schema import RunConfig, StudyConfig

    facts, run = info.gather(), RunConfig()
    chosen = choose_devices(run.device, run.workers, StudyConfig.model_construct(run=run))
    assert (len(chosen), run.threads) == (facts["studies"]["workers"], facts["studies"]["threads"])
    assert chosen[0].startswith(facts["studies"]["device"])
    facts["studies"] = {"workers": 3, "threads": 1, "device": "cpu", "ray": None}
    said = "studies        3 worker processes on the CPU, 1 thread each (set with --workers, run.threads); "
    assert said + "--ray needs ray, which is not installed" in info.render(facts)
    facts["studies"] = {"workers": 1, "threads": 1, "device": "cuda", "ray": "2.50.0"}
    assert "1 worker process, one per GPU" in info.render(facts) and "Ray 2.50.0 with --ray" in info.render(facts)
    facts["packages"]["torch"] = None
    assert "studies        not without torch" in info.render(facts)


EXTRAS = ("torch", "typer", "pydantic", "rich", "scipy", "matplotlib", "PIL", "sklearn", "pandas")


def roarfast(*arguments: str, without: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """The command in an interpreter that cannot import some packages."""
    block = "".join(f"sys.modules[{name!r}] = None; " for name in without)
    code = f"import sys; {block}sys.argv = {['roarfast', *arguments]!r}\nimport roarfast.cli as c; c.main()"
    return python(code)


@pytest.mark.parametrize("without", [EXTRAS, ("typer",), ("torch", "scipy", "jinja2", "filelock")])
def test_help_version_and_info_need_no_extra(without: tuple[str, ...]) -> None:
    for argument, words in (("--help", "selftest"), ("--version", rf.__version__), ("info", "SIMD")):
        result = roarfast(argument, without=without)
        assert result.returncode == 0 and words in result.stdout and not result.stderr, result.stderr


def test_help_waits_for_nothing_heavy() -> None:
    """The whole help page, of the commands too, without torch, SciPy and the rest: not even imported."""
    pytest.importorskip("typer")
    heavy = ("torch", "scipy", "matplotlib", "jinja2", "PIL", "sklearn", "pandas")
    code = (
        "import sys; from typer.testing import CliRunner; from roarfast.commands import app\n"
        "for page in ([], ['run'], ['init'], ['score'], ['report'], ['data', 'pack'], ['validate']):\n"
        "    result = CliRunner().invoke(app, [*page, '--help']); assert result.exit_code == 0, result.output\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    result = python(code)
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


@pytest.mark.parametrize("without", [EXTRAS, ("typer",)])
def test_other_commands_without_extras_say_what_to_install(without: tuple[str, ...]) -> None:
    for arguments in (("demo",), ("run", "study.toml"), ("nonsense",)):
        result = roarfast(*arguments, without=without)
        assert result.returncode == 2 and "pip install 'roarfast[study]'" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_package_that_is_missed_later_is_one_line(tmp_path: Path) -> None:
    result = roarfast("kernels-demo", "--out", str(tmp_path), without=("scipy", "PIL", "matplotlib"))
    assert result.returncode == 2, result.stderr
    assert result.stderr.startswith("error: this needs ") and result.stderr.count("\n") == 1


def test_advice_never_moves_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_extras, "installed", {"torch": "2.7.1+cu126"}.get)
    assert _extras.install_advice() == "get them with: pip install 'roarfast[study]' (your torch 2.7.1+cu126 stays)"
    assert _extras.install_advice("torchvision.models") == "get it with: pip install torchvision 'torch==2.7.1+cu126'"
    assert _extras.install_advice("timm") == "get it with: pip install timm 'torch==2.7.1+cu126'"
    assert _extras.install_advice("pytorch_grad_cam") == "get it with: pip install grad-cam 'torch==2.7.1+cu126'"
    pyproject = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    extras = pyproject["project"]["optional-dependencies"]
    for extra in ("torch", "study"):
        assert "torch>=2.6" in extras[extra] and not any(r.startswith("torchvision") for r in extras[extra])


def test_info_render_names_missing_packages() -> None:
    facts = info.gather()
    facts["packages"] = {"torch": None, "scipy": "1.0"}
    assert "not installed  torch" in info.render(facts)


def test_cuda_tensor_without_cuda_build_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_backend, "_cuda_or_reason", lambda: "not built: no nvcc")
    with pytest.raises(rf.BackendError, match=r"no CUDA kernels \(not built: no nvcc\), but got a CUDA tensor"):
        _backend.cuda()
    assert not _backend.cuda_is_built()


def test_demo_writes_a_strip(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    from roarfast import demo

    path = demo.run(f"{tmp_path}/demo", size=32, batch=2)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "gaussian_filter" in capsys.readouterr().out


def test_info_says_why_a_cuda_module_does_not_load(tmp_path: Path) -> None:
    """A `_cuda` of another system must not break `roarfast info`; nor must a build without one be silent."""
    package = Path(rf.__file__).parent
    copy = tmp_path / "roarfast"
    copy.mkdir()
    for item in package.iterdir():
        if not item.name.startswith(("_cuda.", "__pycache__")):
            (copy / item.name).symlink_to(item)
    (copy / "_backend.py").unlink()
    (copy / "_backend.py").write_bytes((package / "_backend.py").read_bytes())
    run = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from roarfast import info; print(info.render(info.gather()))"
    result = python(run)
    assert "CUDA           not built: " in result.stdout, result.stderr
    (copy / f"_cuda{importlib.machinery.EXTENSION_SUFFIXES[0]}").write_bytes(b"not a library")
    result = python(run)
    assert "CUDA           built, but it does not load: " in result.stdout, result.stderr


@pytest.mark.parametrize("value", ["²", "٣", "0", "-1", "1025", "1e2", "two", " 3"])
def test_numbers_of_threads_in_the_environment(value: str) -> None:
    """`isdigit` takes superscripts, and `int` other alphabets: only what everybody reads as a number counts."""
    code = "import numpy as np, roarfast as rf; rf.sobel(np.ones((3, 3)))"
    environment = os.environ | {"ROARFAST_NUM_THREADS": value, "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"ROARFAST_NUM_THREADS must be an integer from 1 to 1024, got {value!r}" in done.stderr
