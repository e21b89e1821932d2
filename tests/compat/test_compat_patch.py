"""`patch`, `enable`, `status`: undone exactly, counted, in threads, workers and from the command line."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
import types
import warnings

import numpy as np
import pytest
import scipy.ndimage

from roarfast import compat
from roarfast.compat import _patch, _peers, _random, _slots, _status
from roarfast.compat import ndimage as ours
from roarfast.compat._slots import Target

NAMES = ("gaussian_filter", "maximum_filter", "sobel")


@pytest.fixture(autouse=True)
def fresh():
    compat.reset_status()
    before = {name: getattr(scipy.ndimage, name) for name in NAMES}
    yield
    compat.disable()
    assert all(getattr(scipy.ndimage, name) is before[name] for name in NAMES)
    assert not _slots._slots


def patched() -> bool:
    return scipy.ndimage.sobel is ours.sobel


def test_a_block():
    original = scipy.ndimage.sobel
    with compat.patch("scipy"):
        assert patched()
        assert compat.status()["scipy"].active
    assert scipy.ndimage.sobel is original
    assert not compat.status()["scipy"].active


def test_after_an_exception():
    with pytest.raises(KeyError), compat.patch("scipy"):
        raise KeyError
    assert not patched()


def test_nested_and_reused():
    block = compat.patch("scipy")
    with block, block, compat.patch("scipy", mode="fixed"):
        assert patched()
    assert not patched()


def test_as_decorator():
    @compat.patch("scipy")
    def inside():
        return patched()

    assert inside()
    assert not patched()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_blocks_of_threads_may_end_in_any_order(order):
    ends = [threading.Event() for _ in range(3)]
    begun = [threading.Event() for _ in range(3)]

    def block(i):
        with compat.patch("scipy"):
            begun[i].set()
            assert ends[i].wait(10)

    threads = [threading.Thread(target=block, args=(i,)) for i in range(3)]
    for thread, event in zip(threads, begun):
        thread.start()
        assert event.wait(10)
    for count, i in enumerate(order):
        assert patched()
        ends[i].set()
        threads[i].join(10)
        assert patched() == (count < 2)


def test_threads_that_patch_and_call_at_random():
    a = np.random.default_rng(0).random((16, 16))
    expected = scipy.ndimage.maximum_filter(a, 3)
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            with compat.patch("scipy"):
                if not np.array_equal(scipy.ndimage.maximum_filter(a, 3), expected):
                    failures.append(seed)
            if rng.random() < 0.5:
                scipy.ndimage.maximum_filter(a, 3)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert compat.status()["scipy"].fast["maximum_filter"] >= 200


def test_enable_and_disable():
    compat.enable("scipy")
    compat.enable("scipy")
    with compat.patch("scipy"):
        compat.disable("scipy")
        assert patched()
    assert not patched()
    compat.disable("scipy")


class Base:
    @staticmethod
    def inherited():
        return "base"


class Derived(Base):
    @staticmethod
    def own():
        return "own"


def test_static_inherited_and_dict_entries_come_back_as_they_were():
    table = {"f": len}
    own = vars(Derived)["own"]
    token = _slots.push(
        [
            Target(Derived, "own", staticmethod(lambda: "new")),
            Target(Derived, "inherited", staticmethod(lambda: "new")),
            Target(table, "f", max),
        ]
    )
    assert (Derived.own(), Derived.inherited(), table["f"]) == ("new", "new", max)
    assert _slots.original(Derived, "own")() == "own"
    assert _slots.original(table, "f") is len
    _slots.pop(token)
    assert vars(Derived)["own"] is own
    assert "inherited" not in vars(Derived)
    assert Derived.inherited() == "base"
    assert table["f"] is len


def test_all_or_nothing():
    module = types.SimpleNamespace(f=1)
    with pytest.raises((AttributeError, TypeError)):
        _slots.push([Target(module, "f", 2), Target(5, "g", 3)])
    assert module.f == 1


def test_what_others_replaced_meanwhile_stays():
    module = types.ModuleType("m")
    module.f = 1
    token = _slots.push([Target(module, "f", 2)])
    module.f = 3
    with pytest.warns(compat.CompatWarning, match=r"m\.f was replaced by other code"):
        _slots.pop(token)
    assert module.f == 3


def test_an_unknown_version_warns_once_and_works(monkeypatch):
    monkeypatch.setattr(_peers, "version", lambda peer: "99.0")
    with (
        pytest.warns(compat.CompatWarning, match=r"scipy: version 99.0 is not one .* tested against \(1\.17\.1\)"),
        compat.patch("scipy"),
    ):
        assert patched()
        assert compat.status()["scipy"].tested is False
        assert compat.status()["scipy"].version == "99.0"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with compat.patch("scipy"):
            np.testing.assert_array_equal(scipy.ndimage.maximum_filter([1, 2, 1], 3), [2, 2, 2])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: compat.patch(), ValueError, "patch needs at least one peer: one of "),
        (lambda: compat.patch("kwantus"), ValueError, "unknown peer 'kwantus': one of "),
        (lambda: compat.patch(3), TypeError, "peer must be a name or a class like NoisyLinearImputer, got 3"),
        (
            lambda: compat.patch("scipy", mode="best"),
            ValueError,
            "mode must be one of 'faithful' or 'fixed', got 'best'",
        ),
        (lambda: compat.patch("scipy", noise="none"), ValueError, "noise must be one of 'peer' or 'philox'"),
        (lambda: compat.patch("scipy", tol=2), ValueError, r"tol must be in \[1e-10, 0.1\], got 2"),
        (lambda: compat.patch("scipy", seed=-1), ValueError, "seed must be an integer"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_enable_of_several_is_all_or_none():
    with pytest.raises(TypeError, match="is no copy of road_evaluation's NoisyLinearImputer"):
        compat.enable("scipy", Base)
    assert not patched()


def test_status_prints_what_happened():
    assert str(compat.status()) == "nothing patched, nothing called" or "scipy" in str(compat.status())
    with compat.patch("scipy"):
        scipy.ndimage.sobel(np.eye(3))
        scipy.ndimage.sobel(np.ones((2, 2, 2)))
        text = str(compat.status()["scipy"])
    tested = "tested" if scipy.__version__ in _peers.find("scipy").versions else "NOT a tested version"
    assert text.splitlines()[0] == f"scipy {scipy.__version__}, {tested}, patched"
    assert "fast              1  sobel" in text
    assert "passed on         1  sobel: 3 dimensions" in text


def test_worker_init_fn_repeats_the_patches_in_force(monkeypatch):
    with compat.patch("scipy"):
        init = compat.worker_init_fn()
        init(0)  # as in a forked worker: nothing to do
    assert not patched()
    applied = []
    monkeypatch.setattr(_patch, "_apply", lambda peers, options: applied.append(peers))
    init(0)  # as in a spawned one
    assert applied == [("scipy",)]


def run(*args, **kwargs):
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=120, **kwargs)


def test_command_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, numpy as np, scipy.ndimage as nd\n"
        "nd.sobel(np.eye(4))\n"
        "print(nd.sobel.__module__, sys.argv[1:], __name__)\n"
    )
    done = run("-m", "roarfast.compat", "--patch", "scipy", "--status", str(script), "--patch", "x")
    assert done.stdout.split("\n")[0] == "roarfast.compat.ndimage ['--patch', 'x'] __main__"
    assert "fast              1  sobel" in done.stderr
    wrong = run("-m", "roarfast.compat", "--patch", "nothing", str(script))
    assert wrong.returncode == 2
    assert "unknown peer 'nothing'" in wrong.stderr


@pytest.mark.parametrize("processes", [0, 2])
def test_pytest_plugin(tmp_path, processes):
    (tmp_path / "test_it.py").write_text(
        "import scipy.ndimage as nd\n"
        "from roarfast.compat import _patch\n"
        "collected = nd.sobel.__module__\n"
        "def test_it():\n"
        "    assert nd.sobel.__module__ == 'roarfast.compat.ndimage' != collected\n"
        "    nd.sobel([[1.0, 2.0]])\n"
        "def test_options():\n"
        "    ((_, options),) = _patch._requests.values()\n"
        "    assert (options.mode, options.noise) == ('fixed', 'philox')\n"
        "    nd.sobel([[1.0, 2.0]])\n"
        "    nd.sobel([1.0, 2.0])\n"
    )
    parallel = ["-p", "xdist", "-n", str(processes)] if processes else []
    patch = ["--roarfast-patch", "scipy", "--roarfast-mode", "fixed", "--roarfast-noise", "philox"]
    plugins = ["-p", "no:cacheprovider", "-p", "roarfast.compat.pytest_plugin"]
    done = run("-m", "pytest", "-q", *plugins, *parallel, *patch, ".", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "fast              2  sobel" in done.stdout
    assert "passed on         1  sobel: 1 dimensions" in done.stdout


def test_needs_no_peer():
    code = (
        "import sys, roarfast.compat, roarfast.compat.ndimage\n"
        "bad = {'torch', 'scipy', 'quantus', 'pytorch_grad_cam', 'captum'} & set(sys.modules)\n"
        "assert not bad, bad"
    )
    done = run("-c", code)
    assert done.returncode == 0, done.stderr


# ---- layers, forks, other processes


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_latest_that_is_left_shows(order):
    module = types.ModuleType("m")
    module.f = original = object()
    values = [object() for _ in range(3)]
    tokens = [_slots.push([Target(module, "f", value)]) for value in values]
    left = [0, 1, 2]
    for i in order:
        assert module.f is values[left[-1]]
        assert _slots.original(module, "f") is original
        _slots.pop(tokens[i])
        left.remove(i)
    assert module.f is original


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("lock", ["_status", "_slots", "_random"])
def test_a_fork_waits_for_the_calls_of_other_threads(lock):
    """Else a forked worker would wait for ever for a lock whose owner it has not got."""
    module = {"_status": _status._lock, "_slots": _slots._lock, "_random": _random._torch_lock}[lock]
    held = threading.Event()

    def hold():
        with module:
            held.set()
            time.sleep(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    child = os.fork()
    if child == 0:
        got = module.acquire(timeout=5)
        os._exit(0 if got else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_command_line_module(tmp_path):
    (tmp_path / "thing.py").write_text(
        "import sys, scipy.ndimage as nd\n"
        "print(nd.sobel.__module__, sys.argv[1:], __name__)\n"
        "nd.sobel([[1.0, 2.0]])\n"
        "sys.exit(3)\n"
    )
    done = run("-m", "roarfast.compat", "--patch", "scipy", "--status", "-m", "thing", "--x", cwd=tmp_path)
    assert done.stdout.split("\n")[0] == "roarfast.compat.ndimage ['--x'] __main__"
    assert done.returncode == 3
    assert "fast              1  sobel" in done.stderr
