"""road_evaluation's `run_road`, `ImputedDataset` and imputers, without the clone: on any Python and NumPy.

Change the import (`from roarfast.compat import road`), or use `patch("road")` beside a clone. What is equal and what
theirs gets wrong: docs/compat/road.md. Needs torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from roarfast._torchvision import import_torchvision
from roarfast._types import Numpy
from roarfast.compat import _impute, _imputer_class, _road_masks, _slots, _status
from roarfast.compat._options import Options
from roarfast.compat._patch import worker_init_fn
from roarfast.compat._peers import Peer, Replaced, digest
from roarfast.ops import _check as check

if TYPE_CHECKING:
    import torch

LERF = ("rest", "share")

Imputer: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]"
"""Of an image `[C, H, W]` and a mask `[H, W]`, 0 = removed: a `BaseImputer`, or what is called like one."""

Transform: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"
"""Of an image."""


class Items(Protocol):
    """A data set of pairs (image `[C, H, W]`, label), of whatever labels."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> tuple[torch.Tensor, Any]: ...


class Explanations(Protocol):
    """Maps `[H, W, C']` by the number of an item: an array, a list, a file that is read item by item."""

    def __getitem__(self, index: int, /) -> Numpy: ...


class Batches(Protocol):
    """A DataLoader of an `ImputedDataset`: images `[B, C, H, W]`, labels and predictions `[B]`."""

    @property
    def dataset(self) -> Sized:
        """What it loads."""

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]: ...


class BaseImputer:
    """What an imputer offers: a call for one image, and one for a batch."""

    def __call__(self, img: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The image `[C, H, W]` with pixels where `mask` `[H, W]` is 0 replaced."""
        raise NotImplementedError("an imputer needs __call__(img, mask)")

    def batched_call(self, img: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The same for images `[B, C, H, W]` and masks `[B, H, W]`."""
        raise NotImplementedError("this imputer has no batched_call(img, mask)")


class ChannelMeanImputer(BaseImputer):
    """Removed pixels get the mean of their channel over the whole image. The input stays as it was."""

    def __call__(self, img: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The image `[C, H, W]` with pixels where `mask` `[H, W]` is 0 replaced."""
        means = [channel.mean() for channel in img]  # one by one, as the original: a joint mean may round otherwise
        filled = img.clone()
        for channel, mean in zip(filled, means):
            channel[mask == 0] = mean
        return filled

    def batched_call(self, img: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The same for images `[B, C, H, W]` and masks `[B, H, W]`."""
        means = img.reshape(*img.shape[:2], -1).mean(axis=2)[:, :, None, None]  # type: ignore[call-overload]
        kept = mask[:, None]
        return means * (1.0 - kept) + img * kept  # type: ignore[no-any-return]


class ZeroImputer(BaseImputer):
    """Removed pixels become 0."""

    def __call__(self, img: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The image `[C, H, W]` with pixels where `mask` `[H, W]` is 0 replaced."""
        return img * mask[None]

    def batched_call(self, img: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The same for images `[B, C, H, W]` and masks `[B, H, W]`."""
        return img * mask[:, None]


class NoisyLinearImputer(_imputer_class.NoisyLinearImputer, BaseImputer):
    """road_evaluation's `NoisyLinearImputer`."""

    __doc__ = _imputer_class.NoisyLinearImputer.__doc__
    peer = "road"


def imputer_from(name: str) -> BaseImputer:
    """The imputer `"linear"`, `"fixed"` (the channel's mean) or `"zero"`."""
    makers: dict[str, Callable[[], BaseImputer]] = {
        "linear": NoisyLinearImputer,
        "fixed": ChannelMeanImputer,
        "zero": ZeroImputer,
    }
    check.one_of("imputation", name, makers)
    return makers[name]()


class ImputedDataset:
    """A data set with the most (or least) relevant pixels of every image imputed; works in DataLoader workers.

    Args:
        base_dataset: Items are (image `[C, H, W]`, label).
        mask: Explanations, `mask[i]` NumPy `[H, W, C']`.
        th_p: Share of pixels, in [0, 1].
        remove: True removes the `th_p` most relevant pixels. False removes what `lerf` says.
        imputation: An imputer, or `"linear"`, `"fixed"` or `"zero"`; default the channel's mean, as in the original.
        transform: Applied to the imputed image.
        target_transform: Applied to the label.
        prediction: A prediction per item, handed on as the third value; 0 without.
        use_cache: Whether to keep imputed images.
        lerf: With `remove=False`, `"rest"` removes all but the `th_p` most relevant pixels, as the original does;
            `"share"` removes the `th_p` least relevant ones.

    Example:
        >>> import numpy as np, torch
        >>> from roarfast.compat import road
        >>> base = [(torch.rand(3, 8, 8), 0)] * 4
        >>> data = road.ImputedDataset(base, np.random.rand(4, 8, 8, 3), 0.3, imputation="linear")
        >>> image, label, prediction = data[2]
        >>> image.shape
        torch.Size([3, 8, 8])
    """

    def __init__(
        self,
        base_dataset: Items,
        mask: Explanations,
        th_p: float = 1.0,
        remove: bool = True,
        imputation: Imputer | str | None = None,
        transform: Transform | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        prediction: Sequence[Any] | None = None,
        use_cache: bool = False,
        *,
        lerf: str = "rest",
    ) -> None:
        self.base_dataset = base_dataset
        self.img_mask = mask
        self.th_p = check.number("th_p", th_p, 0, 1, "shares are fractions, so 30 % is 0.3")
        self.remove = remove
        self.prediction = prediction
        # Drawn once per data set from NumPy's global generator, as the original does.
        self.random_v = 1e-4 * np.random.randn(*mask[0].shape[:2])  # noqa: NPY002
        self.imputation = (
            imputer_from(imputation) if isinstance(imputation, str) else imputation or ChannelMeanImputer()
        )
        self.use_cache = use_cache
        self.cache: dict[int, tuple[torch.Tensor, Any, Any]] = {}
        self.transform = transform
        self.target_transform = target_transform
        check.one_of("lerf", lerf, LERF)
        self.lerf = lerf

    def __len__(self) -> int:
        return len(self.base_dataset)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, Any, Any]:
        """(image, label, prediction)."""
        if self.use_cache and index in self.cache:
            img, target, pred = self.cache[index]
        else:
            img, target = self.base_dataset[index]
            pred = self.prediction[index] if self.prediction else 0
            share = self.lerf == "share" and not self.remove
            kept = _road_masks.kept(self.img_mask[index], self.random_v, self.th_p, self.remove, share, img)
            if isinstance(self.imputation, _imputer_class.NoisyLinearImputer):
                # By its number, so that Philox noise does not depend on the workers.
                img = self.imputation(img, kept, sample=index)
            else:
                img = self.imputation(img, kept)
            if self.use_cache:
                self.cache[index] = (img, target, pred)
        if self.transform is not None:
            img = self.transform(img)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return img, target, pred


def run_road(
    model: torch.nn.Module,
    dataset_test: Items,
    explanations_test: Explanations,
    transform_test: Transform | None,
    percentages: Sequence[float],
    morf: bool = True,
    batch_size: int = 64,
    imputation: Imputer | str | None = None,
    *,
    num_workers: int = 8,
    mode: str = "faithful",
    device: str | torch.device | None = None,
    lerf: str = "rest",
) -> tuple[torch.Tensor, torch.Tensor]:
    """The ROAD benchmark without retraining: accuracy and probability after removing shares of pixels.

    Args:
        model: A classifier; put in evaluation mode and moved to `device`.
        dataset_test: Items are (image `[C, H, W]`, label).
        explanations_test: `explanations_test[i]` NumPy `[H, W, C']`.
        transform_test: Applied after imputation, such as a normalisation.
        percentages: Shares in [0, 1].
        morf: Most relevant first; False: see `lerf` of `ImputedDataset`.
        batch_size: Of the evaluation.
        imputation: An imputer, or `"linear"` (the default), `"fixed"` or `"zero"`.
        num_workers: Of the DataLoader. The original's 8, because every worker has its own noise.
        mode: `"faithful"`: the probability is that of class 0, as in the original, with a warning; `"fixed"`: that of
            the true class.
        device: Default: the first GPU, or the CPU.
        lerf: As in `ImputedDataset`.

    Returns:
        (accuracies `[P]`, mean probabilities `[P]`).
    """
    import torch

    options = Options(mode)
    if imputation is None:
        imputation = NoisyLinearImputer(noise=0.01, mode=mode)
    device = device or ("cuda:0" if torch.cuda.is_available() else "cpu")
    accuracies, probabilities = torch.zeros(len(percentages)), torch.zeros(len(percentages))
    for i, share in enumerate(percentages):
        data: Any = ImputedDataset(dataset_test, explanations_test, share, morf, imputation, transform_test, lerf=lerf)
        loader: Any = torch.utils.data.DataLoader(
            data, batch_size, num_workers=num_workers, worker_init_fn=worker_init_fn()
        )
        accuracies[i], probabilities[i] = evaluate(model, loader, options, device)
    return accuracies, probabilities


def evaluate(
    model: torch.nn.Module, loader: Batches, options: Options, device: str | torch.device
) -> tuple[float, float]:
    """Accuracy, and the mean probability of the true class (`"fixed"`) or of the third value of an item."""
    import torch

    if not options.fixed:
        _status.warn_once(
            "road", 'the probability is that of class 0, as in the original; mode="fixed" gives that of the true class'
        )
    correct, probability = 0, np.float32(0)
    model.eval()
    model.to(device)
    with torch.no_grad():
        for images, labels, predictions in loader:
            labels = labels.to(device)
            outputs = model(images.to(device))
            correct += int((outputs.argmax(1) == labels).sum())
            classes = labels if options.fixed else predictions.to(device).long()
            shares = torch.nn.functional.softmax(outputs, dim=1).gather(1, classes[:, None])[:, 0]
            for value in shares.cpu().numpy():  # one by one: the original's sum, and its rounding
                probability += value
    _status.fast("road", "road_eval")
    n = len(loader.dataset)
    return correct / n, float(probability / n)


# ---- the patch


class _ImputedDataset(Protocol):
    """What is read of the peer's `ImputedDataset`."""

    base_dataset: Items
    img_mask: Explanations
    th_p: float
    remove: bool
    imputation: Imputer
    transform: Transform | None
    target_transform: Callable[[Any], Any] | None
    prediction: Sequence[Any]
    random_v: npt.NDArray[np.float64]
    use_cache: bool


def _load() -> Replaced:
    try:
        import_torchvision()  # the clone imports it, which fails beside a torch that it was not built for
        module = importlib.import_module("road.road")
        imputations = importlib.import_module("road.imputations")
        data = importlib.import_module("road.imputed_dataset")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"road_evaluation cannot be imported ({error}): its folder must be on the path; roarfast.compat.road needs none"
        ) from None
    return {
        "NoisyLinearImputer": imputations.NoisyLinearImputer,
        "ImputedDataset": data.ImputedDataset,
        "run_road": _slots.original(module, "run_road"),
        "road_eval": _slots.original(module, "road_eval"),
        "from_str": imputations._from_str,
    }


def _targets(replaced: Replaced, options: Options) -> list[_slots.Target]:
    imputer, dataset = replaced["NoisyLinearImputer"], replaced["ImputedDataset"]
    tested = digest(imputer) in PEER.digests["NoisyLinearImputer"]
    trial = _imputer_class.Trial(_slots.original(imputer, "__call__"), options, tested)
    original_batched = _slots.original(imputer, "batched_call")
    original_item = _slots.original(dataset, "__getitem__")

    def batched_call(self: _imputer_class.WeightedImputer, img: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        try:
            _impute.check_batch(img, mask)
            trial.require(self)
            weights = _imputer_class.chosen_weights("road", self.weighting, options)
            host, removed = img.detach().cpu(), _impute.removed_of(mask).cpu()
            result = _impute.impute_torch(host, removed, float(self.noise), options, weights).to(img.device)
        except _status.Outside as outside:
            _status.passed_on("road", "batched_call", str(outside))
            return original_batched(self, img, mask)
        _status.fast("road", "batched_call")
        return result

    def item(self: _ImputedDataset, index: int) -> tuple[torch.Tensor, Any, Any]:
        try:
            _status.require(not self.use_cache, "a data set with a cache")
            explanation = self.img_mask[index]
            _status.require(isinstance(explanation, np.ndarray), "explanations that are not NumPy arrays")
        except _status.Outside as outside:
            _status.passed_on("road", "ImputedDataset", str(outside))
            return original_item(self, index)
        img, target = self.base_dataset[index]
        kept = _road_masks.kept(explanation, self.random_v, self.th_p, self.remove, False, img)
        img = self.imputation(img, kept)
        _status.fast("road", "ImputedDataset")
        img = img if self.transform is None else self.transform(img)
        target = target if self.target_transform is None else self.target_transform(target)
        return img, target, self.prediction[index] if self.prediction else 0

    def road_eval(model: torch.nn.Module, testloader: Batches) -> tuple[float, float]:
        return evaluate(model, testloader, options, importlib.import_module("road.utils").use_device)

    def run_road(*args: object, **kwargs: object) -> tuple[torch.Tensor, torch.Tensor]:
        # "linear" and the other names are compared where they should be assigned in the original, which then fails.
        values = list(args)
        if len(values) > 7 and isinstance(values[7], str):
            values[7] = replaced["from_str"](values[7])
        if isinstance(kwargs.get("imputation"), str):
            kwargs["imputation"] = replaced["from_str"](kwargs["imputation"])
        _status.fast("road", "run_road")
        return replaced["run_road"](*values, **kwargs)

    package, module = importlib.import_module("road"), importlib.import_module("road.road")
    return [
        _slots.Target(imputer, "__call__", _imputer_class.fast_call(trial, "road", options)),
        _slots.Target(imputer, "batched_call", batched_call),
        _slots.Target(dataset, "__getitem__", item),
        _slots.Target(module, "road_eval", road_eval),
        _slots.Target(importlib.import_module("road.retraining"), "road_eval", road_eval),
        _slots.Target(module, "run_road", run_road),
        _slots.Target(package, "run_road", run_road),
    ]


PEER = Peer(
    "road",
    None,
    (),
    _load,
    _targets,
    {
        "NoisyLinearImputer": ("c4c2b71f6c6c8be3",),
        "ImputedDataset": ("397b3f8d4bbc681c",),
        "run_road": ("5e8c714accfe6020",),
        "road_eval": ("c0ec2d6899b06401",),
    },
)
