"""Makes the golden files of the peers that install from an index: run by `make golden` in the peers' environment.

    python tests/helpers/make_golden.py quantus|grad-cam FOLDER

Each file holds inputs, seeds and the peer's own outputs, and the versions that made them. No code of a peer is in it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from helpers import peer_cases as cases

SEED = 11


def versions(peer: str) -> str:
    names = (peer, "numpy", "scipy", "torch")
    return json.dumps({name: importlib.metadata.version(name) for name in names})


def attempt(call: Any) -> Any:
    """The result as an array, or the name of the error."""
    with warnings.catch_warnings(), contextlib.suppress(KeyboardInterrupt):
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:
            return np.array(type(error).__name__)


def add_images(out: dict[str, Any], call: Any, runs: tuple[tuple[str, float], ...]) -> None:
    """Levels A, B and E: every case for every (dtype, noise), and the generators' state afterwards.

    One array per run: the imputed pixels of all cases in a row (known ones are the image's own). Errors by name.
    """
    all_cases = list(cases.image_cases())
    out["names"] = np.array(json.dumps([[case.name, case.image.shape] for case in all_cases]))
    out["images"] = np.concatenate([case.image.ravel() for case in all_cases]).astype(np.float32)
    out["removed"] = np.packbits(np.concatenate([case.removed.ravel() for case in all_cases]))
    errors: dict[str, str] = {}
    states: dict[str, str] = {}
    for dtype, noise in runs:
        values = []
        for case in all_cases:
            cases.seed_everything(SEED)
            result = attempt(lambda: call(case.image.astype(dtype), case.removed, noise))  # noqa: B023
            key = f"{case.name}/{dtype}/{noise}"
            if result.ndim == 3:
                values.append(result[:, case.removed].ravel())
            else:
                errors[key] = str(result)
            states[key] = cases.state_digest()
        out[f"{dtype}/{noise}"] = np.concatenate(values or [np.zeros(0, dtype)])
    out["errors"], out["states"] = np.array(json.dumps(errors)), np.array(json.dumps(states))


def quantus() -> dict[str, Any]:
    import quantus as q
    from quantus.functions.perturb_func import noisy_linear_imputation

    out: dict[str, Any] = {"versions": np.array(versions("quantus"))}

    def call(image: np.ndarray, removed: np.ndarray, noise: float) -> np.ndarray:
        indices = np.flatnonzero(removed)
        return noisy_linear_imputation(arr=image, indices=indices[::-1].copy(), noise=noise)

    if q.__version__ != "0.5.3":  # the older one is kept for its scores
        add_images(out, call, (("float32", 0.0), ("float32", 0.01), ("float64", 0.01), ("float16", 0.01)))
    for channels in (1, 3):
        model = cases.small_model(channels)
        images, attributions = cases.waves(channels)
        for batch in (64, 5):
            for noise in (0.0, 0.01):
                cases.seed_everything(SEED)
                metric = q.ROAD(percentages=[1, 10, 30, 50, 70, 99], noise=noise, disable_warnings=True)
                labels = model_labels(model, images)
                scores = attempt(
                    lambda: metric(model=model, x_batch=images, y_batch=labels, a_batch=attributions, batch_size=batch)  # noqa: B023
                )
                key = f"ROAD/{channels}/{batch}/{noise}"
                out[key] = np.array(list(scores.values())) if isinstance(scores, dict) else scores
                out[f"{key}/state"] = np.array(cases.state_digest())
    return out


def model_labels(model: Any, images: np.ndarray) -> np.ndarray:
    import torch

    with torch.no_grad():
        return model(torch.from_numpy(images)).argmax(1).numpy()


def grad_cam() -> dict[str, Any]:
    import torch

    from roarfast._torchvision import import_torchvision

    import_torchvision()
    from pytorch_grad_cam.metrics import perturbation_confidence as confidence
    from pytorch_grad_cam.metrics import road

    out: dict[str, Any] = {"versions": np.array(versions("grad-cam"))}

    def call(image: np.ndarray, removed: np.ndarray, noise: float) -> np.ndarray:
        imputer = road.NoisyLinearImputer(noise)
        return imputer(torch.from_numpy(image), torch.from_numpy((~removed).astype(np.float32))).numpy()

    add_images(out, call, (("float32", 0.0), ("float32", 0.01), ("float64", 0.01)))
    cams = cases.maps(6, 16, 18)
    for kind in ("RemoveMostRelevantFirst", "RemoveLeastRelevantFirst"):
        for percentile in (0, 10, 37.5, 80, 100, "auto"):
            remove = getattr(confidence, kind)(percentile, lambda image, mask: mask)
            masks = [np.asarray(remove(None, torch.from_numpy(cam))) == 0 for cam in cams]
            out[f"masks/{kind}/{percentile}"] = np.stack(masks)
    images = torch.from_numpy(np.random.default_rng(3).random((6, 3, 16, 18)).astype(np.float32))
    model = cases.small_model(3)
    targets = [lambda scores: torch.softmax(scores, -1)[1]] * 6
    for name in (
        "ROADMostRelevantFirst",
        "ROADLeastRelevantFirst",
        "ROADMostRelevantFirstAverage",
        "ROADLeastRelevantFirstAverage",
        "ROADCombined",
    ):
        cases.seed_everything(SEED)
        model.calls = 0
        out[f"scores/{name}"] = getattr(road, name)()(images, cams, targets, model)
        out[f"scores/{name}/state"] = np.array(cases.state_digest())
        out[f"scores/{name}/calls"] = np.array(model.calls)
    return out


if __name__ == "__main__":
    makers = {"quantus": quantus, "grad-cam": grad_cam}
    peer, folder = sys.argv[1:]
    arrays = makers[peer]()
    version = json.loads(str(arrays["versions"]))[peer]
    path = Path(folder, f"{peer}-{version}.npz")
    np.savez_compressed(path, **arrays)
    print(path, f"{path.stat().st_size / 1024:.0f} KB")
