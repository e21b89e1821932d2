"""What users get wrong: each input has one answer, which names it and says what to do, and no traceback.

Numbers in front are those of the first newcomer's table of 29; the rest came after. `helpers/bad_inputs.py` makes the inputs.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("torch")
pytest.importorskip("pydantic")
pytest.importorskip("PIL")

import torch
from helpers import bad_inputs as bad
from helpers.bad_inputs import Make, config, finished, good_photos, grid, images, npz, photos, run

import roarfast as rf
from roarfast import cli
from roarfast.study import images as study_images
from roarfast.study.runfolder import RunFolder

COULD_NOT_START = 2
SOME_FAILED = 1
MODEL = 'name = "own_code:make"'


def labels(values: Any, **more: Any) -> Make:
    return lambda f: run(f, f'path = "{npz(f, labels=values, **more)}"')


def arrays(more: str = "", **changes: Any) -> Make:
    return lambda f: run(f, f'path = "{npz(f, **changes)}"\n{more}')


def files(chosen: Callable[[dict[str, Any]], dict[str, Any]]) -> Make:
    return lambda f: run(f, photos(f, chosen(good_photos())))


def truncated(folder: Path) -> list[str]:
    path = folder / npz(folder)
    path.write_bytes(path.read_bytes()[:3000])
    return run(folder, 'path = "set.npz"')


def text_file(folder: Path) -> str:
    (folder / "text.npz").write_text("images, labels")
    return "text.npz"


def option(*options: str) -> Make:
    return lambda f: [*run(f), *options]


def without_splits(found: dict[str, Any]) -> dict[str, Any]:
    return {name.partition("/")[2]: content for name, content in found.items()}


def flat(folder: Path) -> str:
    photos(folder, without_splits(good_photos()))
    return str(folder / "photos")


def other_config(folder: Path) -> list[str]:
    finished(folder)
    return run(folder, train="lr = 0.01")


CLASS = np.arange(30) % 3
WHOLE: dict[str, tuple[Make, str]] = {
    "1 path is not there": (
        lambda f: run(f, 'path = "absent"'),
        r"no dataset at .*/absent; give a folder, a pack or an \.npz",
    ),
    "1 npz is not there": (lambda f: run(f, 'path = "absent.npz"'), r"no dataset at .*/absent\.npz"),
    "2 only data.train": (lambda f: run(f, f'train = "{npz(f)}"'), r"data \(line 3\): train and test come together"),
    "3 no test folder": (
        files(lambda found: {k: v for k, v in found.items() if k.startswith("train")}),
        r"photos has no split 'test'; it has train\. In a study, data\.train = \"photos/train\" and data\.test",
    ),
    "4 classes without splits": (
        files(without_splits),
        r"its folders are classes\. Move them below .*/train and .*/test, or",
    ),
    "5 empty folder": (
        files(lambda found: {}),
        r"no images found in .*photos: expected one folder per class with files of \.bmp",
    ),
    "6 corrupt PNG": (
        files(lambda found: found | {"train/cat/1.png": b"\x89PNG\r\n\x1a\nxx"}),
        r"cannot decode image .*train/cat/1\.png",
    ),
    "7 mixed sizes": (
        files(lambda found: found | {"train/cat/1.png": images(1, 0, (9, 8, 3))[0]}),
        r"image of another size: .*1\.png is 8x9, .*0\.png is 8x8\. Pass size=… \(data\.image_size in a study\)",
    ),
    "9 floats in a TIFF": (
        files(lambda found: found | {"train/cat/f.tif": np.ones((8, 8), np.float32)}),
        r"f\.tif has floats, whose range is not known",
    ),
    "10 label 12 of 3": (
        labels(CLASS + 12 * (np.arange(30) == 4), class_names=np.array(list("abc"))),
        r"image 4 has label 13, but there are 3 classes .*1 such",
    ),
    "10 label -1": (labels(CLASS - 1), r"image 0 has label -1"),
    "11 float labels": (labels(CLASS / 3), r"labels must be integers \[N\], got float64 of shape \(30,\)"),
    "11 one-hot labels": (
        labels(np.eye(3, dtype=int)[CLASS]),
        r"labels must be integers \[N\], got int64 of shape \(30, 3\)",
    ),
    "11 fewer labels": (labels(CLASS[:20]), r"30 images .*20 labels|20 labels.*30 images"),
    "12 NCHW": (
        arrays(images=images(30, 0, (3, 8, 8))),
        r"look like \[N, C, H, W\].*data\.layout.*transpose\(0, 2, 3, 1\)",
    ),
    "12 npz without splits (A1)": (
        arrays(is_train=None),
        r"does not say which of its images are for training.*is_train.*train_images",
    ),
    "12 the same file twice (A1)": (
        lambda f: run(f, 'train = "{0}"\ntest = "{0}"'.format(npz(f, is_train=None))),
        r"are the same file, set\.npz: 30 of 30 test images",
    ),
    "13 string labels": (
        labels(np.array(["cat", "dog", "cow"])[CLASS]),
        r"got <U3 of shape \(30,\) \(names of classes go to class_names",
    ),
    "14 truncated npz": (truncated, r"set\.npz is not a readable \.npz file"),
    "14 text as npz": (
        lambda f: run(f, f'path = "{text_file(f)}"'),
        r"text\.npz is not a readable \.npz file: it holds something else",
    ),
    "14 objects in npz": (
        arrays(images=np.array([{}, None], object)),
        r"images holds Python objects, which are not read",
    ),
    "16 weights of another net": (
        lambda f: bad.weights(f, {"conv.weight": torch.zeros(3, 3)}),
        r"w\.pt does not fit this model: missing.*'layer\.weight'.*not in the model: \['conv",
    ),
    "17 malicious weights": (
        lambda f: bad.weights(f, {"layer.weight": bad.Malicious(f / "PWNED")}),
        r"w\.pt holds more than tensors.*can run code",
    ),
    "17 a whole module": (
        lambda f: bad.weights(f, torch.nn.Linear(2, 2)),
        r"save the weights with torch\.save\(model\.state_dict\(\), path\)",
    ),
    "17 truncated weights": (
        lambda f: bad.weights(f, bad.saved({"layer.weight": torch.zeros(3, 192)})[:400]),
        r"w\.pt is damaged",
    ),
    "17 text as weights": (lambda f: bad.weights(f, b"weights"), r"w\.pt is no file that torch\.save wrote"),
    "18 weights are not there": (
        lambda f: run(bad.code(f), model=MODEL + '\nweights = "no.pt"'),
        r"model\.weights: .*not found: .*no\.pt",
    ),
    "19 30 as rate": (
        lambda f: run(f, grid=grid(rest="drops = [30]")),
        r"got 30: rates are fractions, so 30 % is 0\.3",
    ),
    "19 typos": (
        lambda f: run(f, grid=grid('["gard^2"]', "drops = [0.3]\npostproces = ['plain']"), train="epoch = 3"),
        r"3 problems(.|\n)*did you mean 'grad\^2'(.|\n)*did you mean 'postprocess'(.|\n)*did you mean 'epochs'",
    ),
    "20 399 rates": (
        lambda f: run(f, grid=grid(rest=f"drops = {[i / 400 for i in range(1, 400)]}")),
        r"399 drop rates, and at most 254",
    ),
    "21 maps not finite": (
        lambda f: bad.maps(f, test=np.full((10, 8, 8), np.nan)),
        r"10 maps of the test images are not finite",
    ),
    "23 out is a file": (
        lambda f: [*run(f)[:2], "--out", config(f)],
        r"--out .*study\.toml is a file: choose a folder",
    ),
    "24 out under /proc": (
        lambda f: [*run(f)[:2], "--out", "/proc/mine"],
        r"cannot make the run folder /proc/mine: .*choose another --out",
    ),
    "26 another config": (
        other_config,
        r"belongs to another study(.|\n)*train\.lr: None → 0\.01(.|\n)*choose another --out",
    ),
    "28 damaged store": (
        lambda f: ["status", str(bad.spoiled(f))],
        r"results\.sqlite is damaged.*\.recover.*run the study again",
    ),
    "29 device cuda": (option("--device", "cuda"), r"device 'cuda' was asked for, but torch sees no CUDA device|^$"),
    "29 shard 3/2": (option("--shard", "3/2"), r"--shard i/n needs 1 <= i <= n, got '3/2'"),
    "29 only foo": (option("--only", "foo"), r"--only takes field=value pairs such as .*got 'foo'"),
}
if torch.cuda.is_available():
    del WHOLE["29 device cuda"]

MORE: dict[str, tuple[Make, str]] = {
    "unknown command": (lambda f: ["rnu"], r"No such command 'rnu'. Did you mean 'run'\?"),
    "no config named": (lambda f: ["run"], r"Missing argument"),
    "unknown option": (option("--worker", "2"), r"No such option: --worker .*--workers"),
    "no workers": (option("--workers", "0"), r"--workers"),
    "workers in words": (option("--workers", "many"), r"--workers"),
    "only an unknown estimator": (
        option("--only", "estimator=sg-qs"),
        r"there is no estimator 'sg-qs'; did you mean 'sg-sq'",
    ),
    "only a rate in words": (option("--only", "drop=half"), r"drop=half: a rate is a number such as 0\.3"),
    "shard in words": (option("--shard", "first"), r"--shard takes i/n such as 2/4, got 'first'"),
    "shard 0": (option("--shard", "0/2"), r"needs 1 <= i <= n, got '0/2'"),
    "device tpu": (option("--device", "tpu"), r"device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>', got 'tpu'"),
    "factory divides by zero": (
        lambda f: bad.own_model(f, "divides"),
        r"own_code:divides': ZeroDivisionError: division by zero$",
    ),
    "factory takes nothing": (
        lambda f: bad.own_model(f, "takes_nothing"),
        r"'num_classes'\. It is called as f\(num_classes=3\), with in_channels=",
    ),
    "factory returns nothing": (
        lambda f: bad.own_model(f, "forgets"),
        r"must return a torch\.nn\.Module, got NoneType",
    ),
    "factory is a number": (lambda f: bad.own_model(f, "number"), r"'own_code:number' is not callable"),
    "factory is not there": (lambda f: bad.own_model(f, "makee"), r"module 'own_code' has no attribute 'makee'"),
    "module is not there": (lambda f: run(f, model='name = "my_netz:make"'), r"No module named 'my_netz'"),
    "module with a syntax error": (
        lambda f: run(bad.code(f, "def make(:\n"), model=MODEL),
        r"importing own_code failed: SyntaxError: invalid syntax \(own_code\.py, line 1\)",
    ),
    "estimator with a syntax error": (
        lambda f: run(bad.code(f, "def bright(:\n"), grid=grid('["own_code:bright"]')),
        r"estimators\.0\.object: .*SyntaxError.*own_code\.py, line 1",
    ),
    "module that raises": (
        lambda f: run(bad.code(f, "raise ValueError('no licence')\n"), model=MODEL),
        r"importing own_code failed: ValueError: no licence",
    ),
    "module that exits": (
        lambda f: run(bad.code(f, "import sys\nsys.exit(3)\n"), model=MODEL),
        r"importing own_code failed: SystemExit: 3",
    ),
    "model answers a dict": (
        lambda f: bad.own_model(f, "answers_dict"),
        r"must map images \[N, C, H, W\] to logits \[N, classes\], one tensor, got dict",
    ),
    "model answers a tuple": (lambda f: bad.own_model(f, "answers_tuple"), r"one tensor, got tuple"),
    "model answers a number": (lambda f: bad.own_model(f, "answers_number"), r"got a tensor of shape \(\)"),
    "model with one output": (lambda f: bad.own_model(f, "narrow"), r"has 1 outputs, but the data has 3 classes"),
    "model for other images": (
        lambda f: run(bad.code(f), f'path = "{npz(f, images=images(30, 0, (9, 9, 3)))}"', model=MODEL),
        r"does not take images of 9x9 with 3 channels",
    ),
    "options the model does not take": (
        lambda f: run(bad.code(f), model=MODEL + "\noptions = { width = 3 }"),
        r"called as f\(num_classes=3, width=…\)",
    ),
    "unknown model": (
        lambda f: run(f, model='name = "resnet9"'),
        r"there is no model 'resnet9'; did you mean 'resnet8'",
    ),
    "trained model and roar": (
        lambda f: run(f, model="trained = true\nweights = 'w.pt'", grid=grid(protocols='["roar"]')),
        r"'roar' trains a model per cell, but model\.trained = true",
    ),
    "weights are a folder": (
        lambda f: run(bad.code(f), model=MODEL + '\nweights = "."'),
        r"model\.weights: .* is a folder: name the file",
    ),
    "estimator of NumPy": (lambda f: bad.own_estimator(f, "numpy_maps"), r"must return a tensor, got ndarray"),
    "estimator of one map": (
        lambda f: bad.own_estimator(f, "small_maps"),
        r"must return \[2, C, H, W\] or \[2, H, W\], got \(1, 1, 8, 8\)",
    ),
    "estimator with NaN": (
        lambda f: bad.own_estimator(f, "nan_maps"),
        r"estimator 'nan_maps' .*it makes NaN or infinite values",
    ),
    "estimator of two arguments": (
        lambda f: bad.own_estimator(f, "two_arguments"),
        r"It is called as f\(model, x, target\) with its options",
    ),
    "estimator that raises": (
        lambda f: bad.own_estimator(f, "raises_in_maps"),
        r"estimator 'raises_in_maps' .*RuntimeError: no such layer: conv9",
    ),
    "estimator is a number": (
        lambda f: bad.own_estimator(f, "number"),
        r"must be callable as f\(model, x, target\), got 3",
    ),
    "post-processing that halves": (
        lambda f: bad.own_postprocess(f, "halves"),
        r"maps of the same shape \(2, 8, 8\), floats, got float32 of shape \(2, 4, 8\)",
    ),
    "post-processing to integers": (lambda f: bad.own_postprocess(f, "integers"), r"floats, got int64"),
    "post-processing that raises": (
        lambda f: bad.own_postprocess(f, "raises"),
        r"post-processing 'raises' .*KeyError: 'kernel'",
    ),
    "post-processing median(3)": (
        lambda f: run(f, grid=grid('["grad"]', 'drops = [0.3]\npostprocess = ["median(3)"]')),
        r"there is no post-processing 'median'; allowed: plain, max",
    ),
    "maps of other images": (
        lambda f: bad.maps(f, test=np.zeros((9, 8, 8))),
        r"must be numbers of shape \(10, 8, 8\).*got float64 of shape \(9, 8, 8\)",
    ),
    "maps of train only": (lambda f: bad.maps(f, train=np.zeros((20, 8, 8))), r"has no array 'test'"),
    "maps in another order": (
        lambda f: bad.maps(f, test=np.zeros((10, 8, 8)), test_labels=np.zeros(10, int)),
        r"test_labels are not the labels of the data",
    ),
    "maps are not there": (
        lambda f: run(f, grid=grid('["maps:no.npz"]')),
        r"there is no folder or \.npz file .*no\.npz",
    ),
    "training of one argument": (
        lambda f: run(bad.code(f), train='function = "own_code:fit_of_one"'),
        r"train\.function = .*It is called as f\(model, batches, seed\)",
    ),
    "training is not there": (
        lambda f: run(bad.code(f), train='function = "own_code:fti"'),
        r"train\.function \(line 11\): .*no attribute 'fti'",
    ),
    "data set of strings": (
        lambda f: run(bad.code(f), 'name = "own_code:by_split"'),
        r"by_split\[0\]: the image must be a Pillow image, an array or a tensor, got str",
    ),
    "data set normalised": (
        lambda f: run(bad.code(f), 'name = "own_code:normalised"'),
        r"floats must lie in \[0, 1\].*leave out Normalize",
    ),
    "data set with words as labels": (
        lambda f: run(bad.code(f), 'name = "own_code:words"'),
        r"the label must be a class number from 0, got 'cat'",
    ),
    "data set is a number": (lambda f: run(bad.code(f), 'name = "own_code:number"'), r"name a function f\(split\)"),
    "unknown data set": (
        lambda f: run(f, 'name = "cifar11"'),
        r"there is no data set 'cifar11'; did you mean 'cifar10'",
    ),
    "npz with other keys": (
        arrays(images=None, labels=None, is_train=None, x=images(4)),
        r"must hold labels and either images .*; it holds x",
    ),
    "npz of nothing": (
        arrays(images=images(0), labels=CLASS[:0], is_train=np.zeros(0, bool)),
        r"there is no train image in .*set\.npz",
    ),
    "npz all train": (arrays(is_train=np.ones(30, bool)), r"there is no test image in .*set\.npz"),
    "npz of floats": (arrays(images=images(30) / 255), r"images must be uint8 .*scale them to 0\.\.255 first"),
    "npz of no arrays": (
        lambda f: ["data", "show", str(f / bad.bomb(f).split('"')[1]), "--split", "all"],
        r"odd\.npz .*no array",
    ),
    "image_size with npz": (arrays("image_size = 64"), r"size=64 \(data\.image_size in a study\) scales image files"),
    "image_size 0": (arrays("image_size = 0"), r"data\.image_size \(line 6\): must be at least 1, got 0"),
    "layout HWCN": (arrays('layout = "HWCN"'), r"must be 'NHWC' or 'NCHW', got 'HWCN'"),
    "mean of two channels": (
        arrays("mean = [0.5, 0.5]\nstd = [0.2, 0.2]"),
        r"data\.mean has 2 values, but the images have 3 channels",
    ),
    "std 0": (
        arrays("mean = [0.5]\nstd = [0.0]"),
        r"1 problem:\n.*data\.std\.0 \(line 7\): must be above 0\.0, got 0\.0",
    ),
    "test_size 0": (arrays("test_size = 0"), r"data\.test_size \(line 6\): must be at least 1, got 0"),
    "a class that is not there": (arrays('classes = ["0", "cat"]'), r"there is no class 'cat'; allowed: 0, 1, 2"),
    "a rate twice": (lambda f: run(f, grid=grid(rest="drops = [0.3, 0.30]")), r"0\.3 is there twice"),
    "rate below 0": (lambda f: run(f, grid=grid(rest="drops = [-0.1]")), r"must be in \[0, 1\], got -0\.1"),
    "no estimators": (
        lambda f: run(f, grid=grid("[]")),
        r"grid\.0\.estimators \(line 14\): must have at least 1 of them, got \[\]",
    ),
    "no drops": (lambda f: run(f, grid=grid(rest="")), r"drops is missing: road has no rates of its own"),
    "unknown protocol": (
        lambda f: run(f, grid=grid(protocols='["raor"]')),
        r"there is no protocol 'raor'; did you mean 'roar'",
    ),
    "unknown order": (
        lambda f: run(f, grid=grid(rest='drops = [0.3]\norders = ["random"]')),
        r"must be 'morf' or 'lerf', got 'random'",
    ),
    "trials 0": (lambda f: run(f, more="trials = 0"), r"trials \(line 2\): must be at least 1, got 0"),
    "seed -1": (lambda f: run(f, more="seed = -1"), r"seed \(line 2\): must be at least 0, got -1"),
    "lr in quotes": (
        lambda f: run(f, train='lr = "0.1"'),
        r"train\.lr \(line 11\): recipe: lr must be a number > 0, got '0\.1'",
    ),
    "unknown recipe": (lambda f: run(f, train='recipe = "quik"'), r"there is no recipe 'quik'; did you mean 'quick'"),
    "an unclosed quote": (lambda f: run(f, more='title = "mine'), r"is not valid TOML: .*line 2"),
    "init own without data": (
        lambda f: ["init", str(f / "a.toml"), "--preset", "own"],
        r"--preset own and --data DIR come together",
    ),
    "init own of nothing": (
        lambda f: ["init", str(f / "a.toml"), "--preset", "own", "--data", str(f / "no")],
        r"--data: there is nothing at .*no",
    ),
    "init own of classes": (
        lambda f: ["init", str(f / "a.toml"), "--preset", "own", "--data", flat(f)],
        r"--data: .*its folders are classes",
    ),
    "init over a file": (lambda f: ["init", config(f)], r"study\.toml exists already: choose another name, or --force"),
    "init below a file": (
        lambda f: ["init", config(f) + "/a.toml"],
        r"study\.toml is a file, so nothing can be written below it",
    ),
    "report of a file": (lambda f: ["report", config(f)], r"is a file"),
    "report to a file": (
        lambda f: ["report", str(finished(f)), "--out", config(f)],
        r"--out .*study\.toml is a file: choose a folder",
    ),
    "compare with an unknown study": (
        lambda f: ["compare", str(finished(f)), "mine"],
        r"mine is no run folder, no CSV .*cifar10-subset",
    ),
    "status of a file": (lambda f: ["status", config(f)], r"study\.toml is no run folder"),
    "merge of no run": (lambda f: ["merge", str(f / "all"), str(f)], r"is no run folder"),
    "strip of a word": (
        lambda f: ["strip", "--out", str(f / "s.png"), "--images", "first"],
        r"--images takes numbers separated by commas.*'first'",
    ),
    "score maps of another size": (
        lambda f: bad.score(f, {"mine": np.zeros((10, 4, 4))}),
        r"maps\['mine'\] must be \(10, 8, 8\).*got shape \(10, 4, 4\)",
    ),
    "score maps of another number": (
        lambda f: bad.score(f, {"mine": np.zeros((3, 8, 8))}),
        r"3 maps of 'mine', the data has 10 images",
    ),
    "score NaN": (
        lambda f: bad.score(f, {"mine": np.full((10, 8, 8), np.nan)}),
        r"must be finite, got NaN or infinity in 10 of 10 maps",
    ),
    "score an unknown metric": (
        lambda f: bad.score(f, metrics="deltion"),
        r"there is no score 'deltion'; did you mean 'deletion'",
    ),
    "score weights not there": (lambda f: bad.score(f, weights="no.pt"), r"weights: no\.pt is no file"),
    "score model not there": (lambda f: bad.score(f, model="own_code:no"), r"has no attribute 'no'"),
    "score an unknown model": (
        lambda f: bad.score(f, model="resnet9"),
        r"model must be one of convnet, .*got 'resnet9'",
    ),
    "score data not there": (lambda f: bad.score(f, data="no.npz"), r"no dataset at .*no\.npz"),
    "score another normalisation": (
        lambda f: bad.score(f, normalize="imgnet"),
        r"normalize must be 'imagenet', .*got 'imgnet'",
    ),
    "score an unknown split": (lambda f: bad.score(f, split="dev"), r"splits train and test .*not 'dev'"),
    "score text as maps": (
        lambda f: bad.score(f, maps=text_file(f)),
        r"text\.npz cannot be read: it holds something else than arrays",
    ),
    "score on CUDA": (
        lambda f: bad.score(f, device="cuda"),
        r"device 'cuda' was asked for, but torch sees no CUDA device",
    ),
}
if torch.cuda.is_available():
    del MORE["score on CUDA"]
EXPECTED = WHOLE | MORE


@pytest.fixture
def roarfast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[list[str]], tuple[int, str, str]]:
    """The command, in this process: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_code", raising=False)
    study_images.load_data.cache_clear()
    study_images.data_warnings.cache_clear()

    def command(arguments: list[str]) -> tuple[int, str, str]:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["roarfast", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return command


@pytest.mark.parametrize("what", EXPECTED)
def test_one_answer_before_anything_runs(
    what: str, tmp_path: Path, roarfast: Callable[[list[str]], tuple[int, str, str]]
) -> None:
    make, message = EXPECTED[what]
    arguments = make(tmp_path)
    code, out, err = roarfast(arguments)
    assert "Traceback" not in out + err
    assert re.search(message, re.sub(r"[ \n│]*\n│ *", " ", err)), err
    assert code == (1 if arguments[0] == "data" else COULD_NOT_START)
    assert not (tmp_path / "PWNED").exists(), "a file that was read ran code"
    if not out.strip():
        assert len(err.splitlines()) <= 8, "one error, not one per cell"


def test_there_are_enough_of_them() -> None:
    numbers = {int(name.split()[0]) for name in WHOLE} | {8, 9, 15, 21, 22, 23, 25, 27}  # the others have tests below
    assert numbers == set(range(1, 30)) and len(MORE) >= 30


WARNED: dict[str, tuple[Make, str]] = {
    "8 images that are not square": (
        arrays(images=images(30, 0, (8, 12, 3))),
        r"train  20 images of 8x12x3, 3 classes",
    ),
    "15 one class": (
        labels(CLASS * 0),
        r"warning: all train images are of one class \('0'\): there is nothing to learn",
    ),
    "15 a class only in test": (
        labels(np.where(np.arange(30) < 20, CLASS % 2, CLASS)),
        r"1 of 3 classes has no train image: '2'(.|\n)*no model can get them right",
    ),
    "15 a class without images": (
        arrays(class_names=np.array(list("abcd"))),
        r"1 of 4 classes has no train image: 'd'",
    ),
    "15 a class of one image": (
        labels(np.where(np.arange(30) == 3, 2, CLASS % 2)),
        r"one train image is all there is of '2'",
    ),
    "train and test overlap": (
        arrays(images=np.concatenate([images(20), images(10)])),
        r"10 of 10 test images \(100\.00 %\) are also train images",
    ),
    "more images asked for than there are": (
        arrays("train_size = 99999"),
        r"99999 train images were asked for, and there are 20",
    ),
    "maps whose order nobody can check": (
        lambda f: bad.maps(f, test=np.ones((10, 8, 8))),
        r"has no test_labels, so it cannot be checked",
    ),
    "weights of 7 classes (C2)": (
        lambda f: bad.weights(f, {"head.weight": torch.zeros(7, 192), "head.bias": torch.zeros(7)}, "with_head"),
        r"w\.pt does not fit head\.weight, head\.bias, which start fresh",
    ),
}


@pytest.mark.parametrize("what", WARNED)
def test_what_is_doubtful_is_said_before_the_run(
    what: str, tmp_path: Path, roarfast: Callable[[list[str]], tuple[int, str, str]]
) -> None:
    make, message = WARNED[what]
    code, out, err = roarfast([*make(tmp_path), "--dry-run"])
    assert code == 0 and "Traceback" not in out + err
    assert re.search(message, out), out + err


@pytest.mark.parametrize("kind", ["grey", "rgba", "16 bits"])
def test_9_pictures_of_other_kinds_are_read_as_documented(
    kind: str, tmp_path: Path, roarfast: Callable[[list[str]], tuple[int, str, str]]
) -> None:
    picture = {
        "grey": images(1, 0, (8, 8))[0],
        "rgba": images(1, 0, (8, 8, 4))[0],
        "16 bits": np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000,
    }[kind]
    photos(tmp_path, dict.fromkeys(good_photos(), picture))
    code, out, _ = roarfast(["data", "show", str(tmp_path / "photos")])
    assert code == 0 and "8 images of 8x8x3, 2 classes" in out
    if kind == "16 bits":
        mean = float(re.search(r"mean ([0-9.]+)", out).group(1))  # type: ignore[union-attr]
        assert mean == pytest.approx(np.rint(picture / 257).mean() / 255, abs=1e-3), "scaled, not clipped"


def test_21_a_training_that_diverges_fails_once(
    tmp_path: Path, roarfast: Callable[[list[str]], tuple[int, str, str]]
) -> None:
    """One error for the base model, whatever depends on it; `status --errors` has the traceback."""
    code, out, err = roarfast(run(tmp_path, grid=grid('["grad"]', "drops = [0.1, 0.3, 0.5]"), train="lr = 1e30"))
    assert code == SOME_FAILED and "Traceback" not in out + err
    (line,) = [line for line in err.splitlines() if line.startswith("failed: ")]
    assert (
        "base model, trial 0" in line
        and "lower lr or set clip_norm" in line
        and "tasks that need it are left out" in line
    )
    code, out, _ = roarfast(["status", str(tmp_path / "out")])
    assert code == 0 and f"roarfast status {tmp_path / 'out'} --errors" in out
    code, out, err = roarfast(["status", str(tmp_path / "out"), "--errors"])
    assert code == 0 and out.count("Traceback") == 1 and "more cells" in out and "DivergenceError" in out and not err


def test_a_base_model_at_chance_is_said_by_the_run_and_the_report(
    tmp_path: Path, roarfast: Callable[[list[str]], tuple[int, str, str]]
) -> None:
    code, out, err = roarfast(run(tmp_path)[:-1])
    assert code == 0, err
    assert "a base model at chance" in out + err
    assert "a base model at chance" in (tmp_path / "out" / "report" / "index.html").read_text()


ARRAY = np.random.default_rng(0).random((2, 8, 8))
CALLS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "NaN": (lambda: rf.removal_mask(ARRAY * np.nan, 0.3), ValueError, "a must not contain NaN|NaN"),
    "30 for 0.3": (lambda: rf.removal_mask(ARRAY, 30), ValueError, r"rates are fractions, so 30 % is 0\.3"),
    "integers": (lambda: rf.gaussian_filter(ARRAY.astype(int), 1), TypeError, "a must have dtype .*got int64"),
    "a list": (lambda: rf.gaussian_filter([[1.0]], 1), TypeError, "a must be"),
    "a mask of floats": (lambda: rf.fill(ARRAY[:, None], ARRAY), TypeError, "mask must be bool or uint8|mask"),
    "two libraries": (lambda: rf.fill(ARRAY[:, None], torch.ones(2, 8, 8, dtype=torch.bool)), TypeError, "x|mask"),
    "one axis": (lambda: rf.sobel(np.zeros(3)), ValueError, r"\[\.\.\., H, W\]"),
}


@pytest.mark.parametrize("what", CALLS)
def test_22_ops_name_the_argument(what: str) -> None:
    call, kind, message = CALLS[what]
    with pytest.raises(kind, match=message):
        call()


def test_23_a_read_only_disk(
    tmp_path: Path, roarfast: Callable[[list[str]], tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, make = run(tmp_path), Path.mkdir

    def mkdir(path: Path, *args: Any, **options: Any) -> None:
        if path.name == "out":
            raise OSError(30, "Read-only file system", str(path))
        make(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    code, _, err = roarfast(arguments)
    assert code == COULD_NOT_START and re.fullmatch(
        r"error: cannot make the run folder .*out: Read-only file system.*\n", err
    )


def test_25_a_small_disk(
    tmp_path: Path, roarfast: Callable[[list[str]], tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from roarfast.study import study

    few = types.SimpleNamespace(disk_usage=lambda folder: types.SimpleNamespace(free=600), copy2=shutil.copy2)
    monkeypatch.setattr(study, "shutil", few)
    code, _, err = roarfast(run(tmp_path, grid=grid('["grad"]', protocols='["roar"]')))
    assert code == COULD_NOT_START
    needed, free = (float(n) for n in re.findall(r"([0-9.e-]+) GB", err))
    assert needed > free == 6e-7, "small numbers are shown, not rounded to 0.0"


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """A run folder that another process works in."""
    import subprocess

    code = (
        "import sys; from roarfast.study.runfolder import RunFolder\n"
        f"with RunFolder({str(folder)!r}).lock():\n    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        yield
        process.kill()


def test_27_two_runs_at_once(
    tmp_path: Path, roarfast: Callable[[list[str]], tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = run(tmp_path)
    with held(tmp_path / "out"):
        code, _, err = roarfast(arguments)
    assert code == COULD_NOT_START and re.search(r"is in use by another process \(pid \d+\)\. Wait for it", err), err
    assert RunFolder(tmp_path / "out").path.is_dir()
