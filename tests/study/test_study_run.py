"""Tiny studies from end to end: results, kills, workers, shards, and every way to be refused."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.study_helpers import TINY, outcome, write_tiny

torch = pytest.importorskip("torch")
pytest.importorskip("pydantic")

from typer.testing import CliRunner

from roarfast.commands import app
from roarfast.study import Study, images, make
from roarfast.study.config import parse_config
from roarfast.study.errors import StudyError
from roarfast.study.merge import merge
from roarfast.study.results import load
from roarfast.study.runfolder import RunFolder
from roarfast.train.models import build_model, load_weights

RUNNER = CliRunner()


def command(*arguments: object) -> Any:
    return RUNNER.invoke(app, [str(a) for a in arguments])


def python(*arguments: object) -> list[str]:
    return [sys.executable, *map(str, arguments)]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The folder of an uninterrupted run, and its seconds."""
    folder = tmp_path_factory.mktemp("finished")
    begun = time.monotonic()
    result = Study.from_toml(write_tiny(folder), folder / "run").run(workers=1)
    assert result.failed == []
    return folder / "run", time.monotonic() - begun


@pytest.fixture(autouse=True, scope="module")
def _threads() -> Any:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
    torch.use_deterministic_algorithms(False)


def test_records_are_complete_and_sensible(finished: tuple[Path, float]) -> None:
    results = load(finished[0])
    assert {r.status for r in results} == {"done"}
    for r in results:
        assert 0 <= (r.accuracy or 0) <= 1 and 0 < (r.true_class_probability or 0) < 1
        assert sum(r.seconds.values()) > 0
        if r.protocol == "base":
            assert (r.drop, r.removed_fraction, r.estimator) == (0.0, 0.0, "none")
        elif r.estimator == "block":
            assert r.removed_fraction == pytest.approx(r.drop, abs=0.02)  # rectangles have whole sides
        else:
            assert r.removed_fraction == int(r.drop * 1024) / 1024  # the rule is exact
        if r.protocol == "roar":
            assert r.removed_fraction_train == pytest.approx(r.drop, abs=0.02)
            assert 0 < (r.tv_mask or 0) < 1 and (r.tv_map or 0) > 0
    tv = {(r.estimator, r.postprocess): r.tv_mask for r in results.select(protocol="roar", drop=0.3)}
    assert tv["grad^2", "max(3)"] < tv["grad^2", "plain"] < 1.1 * tv["rand", "plain"]
    assert tv["block", "plain"] < tv["grad^2", "max(3)"]
    meta = results.meta
    assert {"config", "versions", "hardware", "seeds", "stage_seconds", "started", "finished"} <= set(meta)
    stages = meta["stage_seconds"]
    assert all(
        stages[name] > 0 for name in ("training", "evaluation", "map_passes", "map_other", "codes", "start", "other")
    )
    assert meta["waiting_seconds"] >= 0


def test_the_folder_holds_what_the_report_needs(finished: tuple[Path, float]) -> None:
    folder = finished[0]
    assert (folder / "study.toml").read_text() == TINY
    assert len((folder / "results.csv").read_text().splitlines()) == len(load(folder)) + 1
    assert not list((folder / "codes").iterdir())  # used up
    assert not list((folder / "models").glob("*.ckpt"))
    for slug in ("grad.2", "sg-sq", "rand", "block"):
        with np.load(folder / "examples" / f"{slug}.npz", allow_pickle=False) as file:
            arrays = dict(file)
        k = 1 if slug in ("rand", "block") else 2
        assert arrays["images"].shape == (2, 32, 32, 3) and arrays["map"].shape == (2, 32, 32)
        assert arrays["processed"].shape == (k, 2, 32, 32) and arrays["mask"].shape == (k, 2, 2, 32, 32)
        assert arrays["modified"].shape == (k, 2, 2, 32, 32, 3) and arrays["mask"].dtype == bool
        kept = np.broadcast_to(arrays["images"], arrays["modified"].shape)[~arrays["mask"]]
        assert (arrays["modified"][~arrays["mask"]] == kept).all()


def test_examples_know_what_the_base_model_predicts(finished: tuple[Path, float]) -> None:
    folder = finished[0]
    config = Study.from_toml(folder / "study.toml", folder).config
    train, test = images.load_data(config.data)
    net = build_model(config.model.name, test.num_classes, test.image_shape[2], **config.model.options)
    load_weights(net, next((folder / "models").glob("base-*.pt")))

    def logits(pixels: Any) -> torch.Tensor:
        x = torch.from_numpy(pixels.reshape(-1, *pixels.shape[-3:])).float() / 255
        return net.eval()(((x - torch.tensor(train.mean)) / torch.tensor(train.std)).permute(0, 3, 1, 2))

    with np.load(folder / "examples" / "grad.2.npz", allow_pickle=False) as file, torch.no_grad():
        assert (file["prediction"] == logits(file["images"]).argmax(1).numpy()).all()
        probability, label = logits(file["modified"]).softmax(1).max(1)
        assert (file["predicted"].reshape(-1) == label.numpy()).all() and file["predicted"].shape == (2, 2, 2)
        assert file["probability"].reshape(-1) == pytest.approx(probability.numpy(), abs=1e-5)
    with np.load(folder / "examples" / "rand.npz", allow_pickle=False) as file:
        assert "prediction" not in file  # no model made these maps


def test_twenty_kills_change_nothing(finished: tuple[Path, float], tmp_path: Path) -> None:
    folder, seconds = finished
    script = Path(__file__).parents[1] / "helpers" / "kill_study.py"
    arguments = python(script, write_tiny(tmp_path), tmp_path / "run", 20, 0, max(0.5, seconds * 0.4))
    done = subprocess.run(arguments, env=environment(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 8, "most kills came after the end: the test has to kill earlier"
    assert outcome(tmp_path / "run") == outcome(folder)


def test_killing_the_parent_of_workers_leaves_no_orphans(finished: tuple[Path, float], tmp_path: Path) -> None:
    config, out = write_tiny(tmp_path), tmp_path / "run"
    arguments = python("-m", "roarfast", "run", config, "--out", out, "--workers", 2)
    process = subprocess.Popen(arguments, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "roar" in line:
            break
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
    workers = [int(pid) for pid in children.stdout.split()]
    second = command("run", config, "--out", out, "--workers", 1)
    assert second.exit_code == 2 and f"in use by another process (pid {process.pid})" in second.output
    os.kill(workers[0], signal.SIGKILL)  # one worker dies: its task is tried again by a new one
    for line in process.stdout:
        if "roar" in line:
            break
    process.kill()
    process.wait()
    result = Study.from_toml(config, out).run(workers=1)  # waits for the orphans to end
    assert result.failed == []
    assert not any(_alive(pid) for pid in workers)
    assert outcome(out) == outcome(finished[0])


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0]
    except OSError:
        return False


def test_a_failing_cell_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, out = write_tiny(tmp_path, estimators='["rand"]', protocols='["roar"]'), tmp_path / "run"
    original = make._cells

    def broken(work: Any, task: Any, *rest: Any) -> Any:
        if task.cell.drop == 0.3:
            raise RuntimeError("the loss became NaN")
        return original(work, task, *rest)

    monkeypatch.setattr(make, "_cells", broken)
    result = command("run", config, "--out", out, "--workers", 1)
    assert result.exit_code == 1
    assert "the loss became NaN" in result.output
    failed, done = load(out).select(drop=0.3)[0], load(out).select(drop=0.5)[0]
    assert failed.status == "failed" and "Traceback" in (failed.error or "") and done.status == "done"
    assert "1 failed" in command("status", out).output
    monkeypatch.undo()
    assert command("run", config, "--out", out, "--workers", 1).exit_code == 0
    assert {r.status for r in load(out)} == {"done"}


def test_a_full_disk_stops_with_a_clear_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, out = write_tiny(tmp_path, estimators='["rand"]', protocols='["roar"]'), tmp_path / "run"

    def full(*arguments: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(make, "_codes", full)
    result = command("run", config, "--out", out, "--workers", 1)
    assert result.exit_code == 2 and "free some space and give the same command again" in result.output
    monkeypatch.setattr("roarfast.study.study.bytes_needed", lambda *arguments: 1 << 60)
    result = command("run", config, "--out", out, "--workers", 1)
    assert result.exit_code == 2 and "GB free" in result.output


def test_a_changed_config_is_refused_in_an_old_folder_and_growth_is_not(tmp_path: Path) -> None:
    out = tmp_path / "run"
    small = {"estimators": '["rand"]', "protocols": '["roar"]'}
    assert command("run", write_tiny(tmp_path, **small), "--out", out, "--workers", 1).exit_code == 0
    result = command("run", write_tiny(tmp_path, epochs="3", **small), "--out", out, "--workers", 1)
    assert result.exit_code == 2
    assert "belongs to another study" in result.output and "train.epochs: 2 → 3" in result.output
    result = command("run", write_tiny(tmp_path, drops="[0.3]", **small), "--out", out, "--workers", 1)
    assert result.exit_code == 2 and "the grid lost 1 of its cells" in result.output
    before = outcome(out)
    grown = write_tiny(tmp_path, drops="[0.3, 0.4, 0.5]", **small)
    assert command("run", grown, "--out", out, "--workers", 1).exit_code == 0
    after = outcome(out)
    assert len(after) == len(before) + 1 and {key: after[key] for key in before} == before


def test_unreadable_data_is_a_clear_error(tmp_path: Path) -> None:
    config = write_tiny(tmp_path)
    config.write_text(TINY.replace('name = "shapes"', 'name = "mine"\ntrain = "a.npz"\ntest = "b.npz"'))
    result = command("run", config, "--out", tmp_path / "run")
    assert result.exit_code == 2 and "cannot read the train images" in result.output and "a.npz" in result.output
    (tmp_path / "a.npz").write_bytes(b"PK broken")
    result = command("run", config, "--out", tmp_path / "run")
    assert result.exit_code == 2 and "not a readable .npz" in result.output


def test_classes_can_be_chosen() -> None:
    text = TINY.replace('name = "shapes"', 'name = "shapes"\nclasses = ["ring", "disk"]')
    train, test = images.load_data(parse_config(text).data)
    assert train.class_names == test.class_names == ("ring", "disk") and (len(train), len(test)) == (60, 40)
    assert set(train.labels.tolist()) == {0, 1}
    with pytest.raises(StudyError, match=r"no class 'rng'; did you mean 'ring'\?"):
        images.load_data(parse_config(text.replace('"ring"', '"rng"')).data)


def test_workers_read_the_generated_images_their_parent_made(tmp_path: Path) -> None:
    data = parse_config(TINY.replace('name = "shapes"', 'name = "shapes"\nclasses = ["ring", "disk"]')).data
    images.share_data(RunFolder(tmp_path), data)
    (file,) = (tmp_path / ".shared").iterdir()
    for part, shared in zip(images.load_data(data), images.shared_data(RunFolder(tmp_path), data)):
        assert shared.data_hash == part.data_hash and shared.class_names == part.class_names
        assert (shared.name, shared.split) == (part.name, part.split)
    other = data.model_copy(update={"seed": 5})
    assert images.shared_data(RunFolder(tmp_path), other)[0].data_hash != images.load_data(data)[0].data_hash
    images.forget_shared_data(RunFolder(tmp_path))
    assert not file.parent.exists()
    assert images.shared_data(RunFolder(tmp_path), data)[0].data_hash == images.load_data(data)[0].data_hash


def test_shards_merge_to_the_whole(tmp_path: Path) -> None:
    config = write_tiny(tmp_path, trials="2", estimators='["grad^2", "rand"]', protocols='["roar"]')
    whole = Study.from_toml(config, tmp_path / "whole")
    assert whole.run(workers=1).failed == []
    out = tmp_path / "parts"
    for i in (1, 2):
        assert command("run", config, "--out", out, "--workers", 1, "--shard", f"{i}/2").exit_code == 0
    result = command("merge", out)
    assert result.exit_code == 0 and "0 failed, 0 missing" in result.output
    assert outcome(out) == outcome(tmp_path / "whole")
    assert [r.key for r in load(out)] == [r.key for r in load(tmp_path / "whole")]
    assert (out / "examples" / "grad.2.npz").exists()
    assert command("run", config, "--out", out, "--workers", 1).output.count("everything was done already") == 1
    other = write_tiny(tmp_path, trials="2", estimators='["grad^2", "rand"]', protocols='["roar"]', epochs="1")
    Study.from_toml(other, tmp_path / "other").run(workers=1, only="estimator=rand,trial=0")
    with pytest.raises(StudyError, match="no shards of one study"):
        merge(tmp_path / "mixed", [out / "shards" / "1-of-2", tmp_path / "other"])


def test_every_protocol_runs(tmp_path: Path) -> None:
    protocols = '["roar", "kar", "road", "road-retrain", "no-retrain"]'
    config = write_tiny(
        tmp_path, protocols=protocols, estimators='["grad"]', postprocess='["gaussian(1)"]', drops="[0.25]"
    )
    result = command("run", config, "--out", tmp_path / "run", "--workers", 1, "--mask-only")
    assert result.exit_code == 0, result.output
    records = {(r.protocol, r.order): r for r in load(tmp_path / "run")}
    names = {"base", "roar", "kar", "road", "road-retrain", "no-retrain", "mask-only"}
    assert {protocol for protocol, _ in records} == names and ("road", "lerf") in records
    assert records["kar", "morf"].removed_fraction == 0.75 and records["roar", "morf"].removed_fraction == 0.25
    assert records["kar", "morf"].tv_mask == records["roar", "morf"].tv_mask
    assert records["no-retrain", "morf"].removed_fraction_train is None
    assert records["road", "morf"].seconds["impute"] > 0


def test_a_study_in_this_process_leaves_the_settings_of_torch_alone(tmp_path: Path) -> None:
    import torch

    config = write_tiny(tmp_path, protocols='["no-retrain"]', estimators='["rand"]', drops="[0.5]")
    assert Study.from_toml(config, tmp_path / "run").run(workers=1).failed == []
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory


def test_init_dry_run_and_only(tmp_path: Path) -> None:
    file = tmp_path / "demo.toml"
    assert command("init", file).exit_code == 0
    assert "exists already" in command("init", file).output
    assert command("init", file, "--force", "--preset", "paper-svhn").exit_code == 0
    result = command("init", tmp_path / "x.toml", "--preset", "paper-cifar")
    assert result.exit_code == 2 and "did you mean 'paper-cifar10'?" in result.output
    config, out = write_tiny(tmp_path), tmp_path / "run"
    result = command("run", config, "--out", out, "--dry-run", "--only", "estimator=rand,protocol=roar", "--workers", 1)
    assert result.exit_code == 0, result.output
    assert "roar rand plain t=0.3 trial 0" in result.output and "about" in result.output and not out.exists()
    result = command("run", config, "--out", out, "--only", "estimator=rand,protocol=roar", "--workers", 1)
    assert result.exit_code == 0
    done = [r for r in load(out) if r.status == "done"]
    assert {(r.estimator, r.protocol) for r in done} == {("rand", "roar")} and len(done) == 2
    assert "about" in command("status", out).output
