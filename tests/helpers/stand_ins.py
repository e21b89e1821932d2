"""Modules and classes named as those of the packages that `patch` replaces parts of; no code of any of them.

What is replaced here answers `THEIRS`, so that a test sees a call that was passed on. The imputers do impute, by
`helpers.vendored_imputer`: unknown ones are tried on a small image before they are replaced.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import torch

from helpers import vendored_imputer

THEIRS = "theirs"


def theirs(*args, **kwargs):
    return THEIRS


def modules(monkeypatch, **contents):
    """Modules by dotted name (`__` for a dot), their packages included, in `sys.modules` until the test ends."""
    for name, attributes in contents.items():
        parts = name.split("__")
        for i in range(1, len(parts) + 1):
            whole = ".".join(parts[:i])
            if not isinstance(sys.modules.get(whole), StandIn):
                monkeypatch.setitem(sys.modules, whole, StandIn(whole))
                if i > 1:
                    setattr(sys.modules[".".join(parts[: i - 1])], parts[i - 1], sys.modules[whole])
        vars(sys.modules[".".join(parts)]).update(attributes)
    return [sys.modules[".".join(name.split("__"))] for name in contents]


class StandIn(ModuleType):
    def __init__(self, name):
        super().__init__(name)
        self.__path__ = []  # a package


# ---- Quantus 0.6.0


def quantus(monkeypatch):
    """(module of the function, the class ROAD, the class IROF)."""

    def noisy_linear_imputation(arr, indices, noise=0.01, **kwargs):
        return THEIRS

    def assert_attributions(x_batch, a_batch):
        raise AssertionError(THEIRS)

    def calculate_auc(values, dx=1, batched=False):
        return THEIRS

    class ROAD:
        def __init__(self, percentages, noise=0.01, function=None):
            self.percentages, self.a_size, self.evaluation_scores = percentages, None, []
            self.perturb_func = functools.partial(function or functions.noisy_linear_imputation, noise=noise)

        def evaluate_batch(self, model, x_batch, y_batch, a_batch, **kwargs):
            return THEIRS

        def custom_batch_preprocess(self, a_batch, **kwargs):
            raise NotImplementedError

        def custom_postprocess(self, **kwargs):
            raise NotImplementedError

        def __call__(self, model, x, y, a, batch=64):
            """The order in which 0.6.0 calls the three."""
            self.evaluation_scores = []
            for i in range(0, len(x), batch):
                part = slice(i, i + batch)
                self.custom_batch_preprocess(a_batch=a[part])
                self.evaluation_scores.extend(
                    self.evaluate_batch(model=model, x_batch=x[part], y_batch=y[part], a_batch=a[part])
                )
            self.custom_postprocess()
            return self.evaluation_scores

    class IROF:
        def evaluate_batch(self, model, x_batch, y_batch, a_batch, **kwargs):
            return THEIRS

    functions, *_ = modules(
        monkeypatch,
        quantus__functions__perturb_func={"noisy_linear_imputation": noisy_linear_imputation},
        quantus__helpers__asserts={"assert_attributions": assert_attributions},
        quantus__helpers__utils={"calculate_auc": calculate_auc},
        quantus__helpers__warn={"warn_perturbation_caused_no_change": theirs},
        quantus__helpers__constants={"AVAILABLE": {"noisy_linear_imputation": noisy_linear_imputation}},
        quantus__metrics__faithfulness__road={"ROAD": ROAD, "noisy_linear_imputation": noisy_linear_imputation},
        quantus__metrics__faithfulness__irof={"IROF": IROF},
        quantus={"noisy_linear_imputation": noisy_linear_imputation},
    )
    return functions, ROAD, IROF


class Model:
    """What Quantus hands its metrics: a model of torch that takes and gives NumPy."""

    def __init__(self, net):
        self.net = net

    def predict(self, x):
        with torch.no_grad():
            return self.net(torch.from_numpy(x)).numpy()

    def shape_input(self, x, shape, channel_first, batched):
        assert channel_first and batched
        return x.reshape(shape)


# ---- pytorch-grad-cam 1.5.7


def grad_cam(monkeypatch):
    """The classes, by name."""

    class NoisyLinearImputer(vendored_imputer.NoisyLinearImputer):
        def __init__(self, noise=0.01, weighting=None):
            self.noise = noise

        def __call__(self, img, mask):
            return super().__call__(img, mask)

    class RemoveMostRelevantFirst:
        def __init__(self, percentile, imputer):
            self.percentile, self.imputer = percentile, imputer

    class RemoveLeastRelevantFirst(RemoveMostRelevantFirst):
        pass

    class PerturbationConfidenceMetric:
        def __init__(self, perturbation):
            self.perturbation = perturbation

        def __call__(self, *args, **kwargs):
            return THEIRS

    class AveragerAcrossThresholds:
        def __init__(self, imputer, percentiles=(20, 80)):
            self.imputer, self.percentiles = imputer, percentiles

        def __call__(self, *args):
            return THEIRS

    class ROADMostRelevantFirst(PerturbationConfidenceMetric):
        def __init__(self, percentile=80):
            super().__init__(RemoveMostRelevantFirst(percentile, NoisyLinearImputer()))

    class ROADLeastRelevantFirst(PerturbationConfidenceMetric):
        def __init__(self, percentile=20):
            super().__init__(RemoveLeastRelevantFirst(percentile, NoisyLinearImputer()))

    class ROADCombined:
        def __init__(self, averager=AveragerAcrossThresholds):
            self.morf_averager, self.lerf_averager = averager(ROADMostRelevantFirst), averager(ROADLeastRelevantFirst)

        def __call__(self, *args):
            return THEIRS

    found = {name: value for name, value in locals().items() if isinstance(value, type)}
    modules(
        monkeypatch,
        pytorch_grad_cam__metrics__road=found,
        pytorch_grad_cam__metrics__perturbation_confidence=found,
    )
    return SimpleNamespace(**found)


# ---- road_evaluation, soco, roar


def road(monkeypatch):
    """(package, classes by name)."""

    class NoisyLinearImputer(vendored_imputer.NoisyLinearImputer):
        def __call__(self, img, mask):
            return super().__call__(img, mask)

        def batched_call(self, img, mask):
            return THEIRS

    class ImputedDataset:
        def __init__(self, base_dataset, mask, th_p, remove, imputation, use_cache=False, prediction=()):
            self.base_dataset, self.img_mask, self.th_p, self.remove = base_dataset, mask, th_p, remove
            self.imputation, self.use_cache, self.prediction = imputation, use_cache, prediction
            self.transform = self.target_transform = None
            self.random_v = 1e-4 * np.random.randn(*mask[0].shape[:2])  # noqa: NPY002

        def __len__(self):
            return len(self.base_dataset)

        def __getitem__(self, index):
            return THEIRS

    def run_road(*args, **kwargs):
        return args, kwargs

    def road_eval(model, testloader):
        return THEIRS

    package, *_ = modules(
        monkeypatch,
        road={"run_road": run_road, "ImputedDataset": ImputedDataset},
        road__road={"run_road": run_road, "road_eval": road_eval},
        road__retraining={"road_eval": road_eval},
        road__imputations={"NoisyLinearImputer": NoisyLinearImputer, "_from_str": "imputer {}".format},
        road__imputed_dataset={"ImputedDataset": ImputedDataset},
        road__utils={"use_device": "cpu"},
    )
    return package, SimpleNamespace(NoisyLinearImputer=NoisyLinearImputer, ImputedDataset=ImputedDataset)


def soco(monkeypatch, masks):
    """The class; its masks are these, in turn, and each takes a permutation as soco's do by area."""

    class ROAD:
        def __init__(self, noise=0.01, mask_ratio=0.4, smap_mask_mode="morf", by_area=True):
            self.noise, self.mask_ratio = noise, mask_ratio
            self.smap_mask_mode, self.by_area = smap_mask_mode, by_area

        def forward(self, img, smap):
            return THEIRS

    left = iter(masks)

    def by_area(smap, mask_ratio, smap_mask_mode):
        torch.randperm(smap.numel())
        return next(left)

    def by_value(smap, mask_ratio, smap_mask_mode):
        return next(left)

    contents = {"get_road_mask_by_area": by_area, "get_road_mask_by_value": by_value, "ROAD": ROAD}
    (module,) = modules(monkeypatch, soco__imputations__road=contents)
    ROAD.__module__ = module.__name__
    return ROAD


def roar(monkeypatch):
    """The two classes."""

    class LinearImputation:
        def __init__(self, noise=0.01):
            self.noise = noise

        def transform(self, results):
            return THEIRS

    class RemOve:
        def __init__(self, mask_dir, ratio, filter, apply_mask=True):
            self.mask_dir, self.attr, self.mean = mask_dir, "grad", np.array([1.0, 2.0, 3.0])
            self.ratio, self.filter, self.apply_mask = ratio, filter, apply_mask
            self.maximum_kwargs, self.gaussian_kwargs = {"size": 3}, {"sigma": 1.0}

        def transform(self, results):
            return THEIRS

    modules(
        monkeypatch,
        roar__datasets__transforms__infilling={"LinearImputation": LinearImputation},
        roar__datasets__transforms__masking={"RemOve": RemOve},
    )
    return LinearImputation, RemOve
