"""The models of the studies, by name, and any other by its factory.

| name | what | for |
|---|---|---|
| `convnet` | four conv-BN-ReLU blocks, pooling in the first three, global max pool | CPUs: 32x32 in seconds per epoch |
| `linear` | one linear layer on all pixels | maps with a known answer: the gradient is the layer's weights |
| `resnet8` | one residual block per stage, widths 16, 32, 64 | small GPUs, quick checks with a residual net |
| `resnet18-tiny` | eight residual blocks as in ResNet-18, widths 16, 32, 64, 128 | CPUs and small GPUs; the falsification of Li et al. |
| `resnet18` | torchvision's, with the CIFAR stem (3x3 stride 1, no max pool) | CIFAR-10 and SVHN of the papers |
| `resnet50` | torchvision's, unchanged | CUB-200, ImageNet |
"""

from __future__ import annotations

import contextlib
import inspect
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from roarfast._objects import is_reference, load_object
from roarfast._torchvision import import_torchvision
from roarfast.train.batch_norm import use_ghost_batch_norm

ModelFactory = Callable[..., nn.Module]


class GlobalMaxPool(nn.Module):
    """The maximum over each channel; unlike `nn.AdaptiveMaxPool2d`, its gradient is deterministic on CUDA."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[B, C, H, W]` → `[B, C]`."""
        return x.amax((2, 3))


def _halve(x: torch.Tensor) -> torch.Tensor:
    """2x2 max pooling, rounding up. Without a gradient nobody asks where the maxima were: 4x as fast, 15x in planes."""
    if torch.is_grad_enabled() or x.device.type != "cpu" or x.shape[-1] % 2 or x.shape[-2] % 2:
        return F.max_pool2d(x, 2, ceil_mode=True)
    x = torch.maximum(x[..., 0::2], x[..., 1::2])
    return torch.maximum(x[..., 0::2, :], x[..., 1::2, :])


def _pooling() -> nn.MaxPool2d:
    """`nn.MaxPool2d` itself, by which attribution methods know it, with `_halve` as its forward."""
    pool = nn.MaxPool2d(2, ceil_mode=True)  # ceil: 8x8 digits survive three poolings
    pool.forward = _halve  # type: ignore[assignment, method-assign]
    return pool


class ConvNet(nn.Module):
    """Four 3x3 conv-BN-ReLU blocks, 2x2 max pooling in the first three, global max pool, one linear layer.

    Widths 16/48/96/192 put about the same number of multiplications into each of the last three blocks; the first, at
    full resolution and bound by memory, is kept thin. Pooling comes right after the convolution, so that normalisation
    and ReLU see a quarter of the pixels.
    """

    def __init__(
        self, num_classes: int, in_channels: int = 3, widths: tuple[int, ...] = (16, 48, 96, 192), dropout: float = 0.0
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for i, width in enumerate(widths):
            layers.append(nn.Conv2d(in_channels, width, 3, padding=1, bias=False))
            if i < len(widths) - 1:
                layers.append(_pooling())
            layers += [nn.BatchNorm2d(width), nn.ReLU()]
            in_channels = width
        self.features = nn.Sequential(*layers)
        self.pool = GlobalMaxPool()
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.fc = nn.Linear(in_channels, num_classes)
        _init_convolutions(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images `[B, C, H, W]` → logits `[B, num_classes]`."""
        logits: torch.Tensor = self.fc(self.dropout(self.pool(self.features(x))))
        return logits


class LinearModel(nn.Module):
    """One linear layer on all pixels of images of one size: the gradient of a logit is its row of weights."""

    def __init__(self, num_classes: int, in_channels: int = 3, size: int | tuple[int, int] = 32) -> None:
        super().__init__()
        self.height, self.width = (size, size) if isinstance(size, int) else size
        self.fc = nn.Linear(in_channels * self.height * self.width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[B, in_channels, size, size]` → `[B, num_classes]`."""
        if x.shape[2:] != (self.height, self.width):
            raise ValueError(
                f"images are {x.shape[2]}x{x.shape[3]}, the model `linear` was made for {self.height}x{self.width}: "
                f"model.options = {{ size = [{x.shape[2]}, {x.shape[3]}] }}"
            )
        logits: torch.Tensor = self.fc(x.flatten(1))
        return logits


class ResidualBlock(nn.Module):
    """conv-BN-ReLU-conv-BN plus the input (through a 1x1 convolution where the shape changes), then ReLU."""

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu2 = nn.ReLU()  # a module of its own: guided backprop hooks each one
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[B, in_channels, H, W]` → `[B, channels, H / stride, W / stride]`."""
        y = self.relu1(self.bn1(self.conv1(x)))
        return self.relu2(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet8(nn.Module):
    """A 3x3 stem and three stages of one residual block: widths w, 2w, 4w."""

    def __init__(self, num_classes: int, in_channels: int = 3, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(in_channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.layer1 = ResidualBlock(width, width, 1)
        self.layer2 = ResidualBlock(width, 2 * width, 2)
        self.layer3 = ResidualBlock(2 * width, 4 * width, 2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(4 * width, num_classes)
        _init_convolutions(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images `[B, C, H, W]` → logits `[B, num_classes]`."""
        y = self.layer3(self.layer2(self.layer1(self.stem(x))))
        return self.fc(self.pool(y).flatten(1))


class TinyResNet18(nn.Module):
    """A 3x3 stem and four stages of two residual blocks, widths w, 2w, 4w, 8w: eight blocks, as in ResNet-18."""

    def __init__(self, num_classes: int, in_channels: int = 3, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(in_channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        stages: list[nn.Module] = []
        channels = width
        for i in range(4):
            wide = width << i
            stages.append(
                nn.Sequential(ResidualBlock(channels, wide, 1 if i == 0 else 2), ResidualBlock(wide, wide, 1))
            )
            channels = wide
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, num_classes)
        _init_convolutions(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images `[B, C, H, W]` → logits `[B, num_classes]`."""
        y = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        return self.fc(self.pool(y).flatten(1))


def _init_convolutions(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def _resnet18(num_classes: int, in_channels: int = 3, **options: object) -> nn.Module:
    model = import_torchvision("models").resnet18(num_classes=num_classes, **options)
    model.conv1 = nn.Conv2d(in_channels, 64, 3, 1, 1, bias=False)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    model.maxpool = nn.Identity()
    return model


def _resnet50(num_classes: int, in_channels: int = 3, **options: object) -> nn.Module:
    model = import_torchvision("models").resnet50(num_classes=num_classes, **options)
    if in_channels != 3:
        model.conv1 = nn.Conv2d(in_channels, 64, 7, 2, 3, bias=False)
        nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    return model


MODELS: dict[str, ModelFactory] = {
    "convnet": ConvNet,
    "linear": LinearModel,
    "resnet8": ResNet8,
    "resnet18-tiny": TinyResNet18,
    "resnet18": _resnet18,
    "resnet50": _resnet50,
}


def build_model(
    name_or_factory: str | ModelFactory,
    num_classes: int,
    in_channels: int = 3,
    *,
    weights: str | Path | None = None,
    seed: int | None = None,
    ghost_batch: int | None = None,
    **options: object,
) -> nn.Module:
    """Builds a model with its initial weights.

    Args:
        name_or_factory: `"convnet"`, `"linear"`, `"resnet8"`, `"resnet18-tiny"`, `"resnet18"`, `"resnet50"`, `"package.module:function"`, or a
            function. It is called with `num_classes`, `in_channels` (if it takes that) and `options`.
        num_classes: Size of the last layer.
        in_channels: Channels of the images.
        weights: Local file with a state dict (`torch.save`), for example ImageNet weights. Loaded with
            `weights_only=True`; a classifier of another size (`fc`, `classifier`, `head`) keeps its fresh weights,
            any other difference is an error.
        seed: Seeds the initial weights without touching the global generator.
        ghost_batch: Normalise in groups of this many samples (see `roarfast.train.batch_norm`).
        **options: For the factory, such as `widths` of `convnet`.

    Returns:
        The model, on the CPU, in training mode.

    Example:
        >>> model = build_model("convnet", 10, seed=0)
        >>> model(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """
    if num_classes < 1:
        raise ValueError(f"num_classes must be at least 1, got {num_classes}")
    factory = _resolve(name_or_factory)
    arguments: dict[str, object] = {"num_classes": num_classes, **options}
    if in_channels != 3 or _accepts(factory, "in_channels"):
        arguments["in_channels"] = in_channels
    with _seeded(seed):
        model = factory(**arguments)
    if not isinstance(model, nn.Module):
        raise TypeError(f"model factory {name_or_factory!r} must return a torch.nn.Module, got {type(model).__name__}")
    if weights is not None:
        load_weights(model, weights)
    if ghost_batch is not None:
        use_ghost_batch_norm(model, ghost_batch)
    return model


def load_weights(model: nn.Module, path: str | Path) -> list[str]:
    """Copies a saved state dict into a model; returns the names of classifier tensors left as they were.

    Args:
        model: Receives the weights, in place.
        path: File written by `torch.save(state_dict)`, or a checkpoint with a `"model"` or `"state_dict"` entry. Prefixes
            that `DistributedDataParallel` and `torch.compile` add to all names are taken off.

    Raises:
        FileNotFoundError, ValueError: The file is missing, cannot be read as weights, or does not fit; they name it.

    Example:
        >>> torch.save(nn.Linear(4, 2).state_dict(), "weights.pt")
        >>> load_weights(nn.Linear(4, 2), "weights.pt")
        []
    """
    path = Path(path)
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a folder: name the file of weights in it")
    if not path.is_file():
        raise FileNotFoundError(
            f"model weights not found: {path}. Save them once with "
            "`torch.save(torchvision.models.resnet50(weights='DEFAULT').state_dict(), path)` where there is a network."
        )
    state = _read_state(path)
    own = model.state_dict()
    kept = [
        name
        for name, value in own.items()
        if name.split(".")[0] in ("fc", "classifier", "head")
        and (name not in state or state[name].shape != value.shape)
    ]
    wrong = [name for name in own if name not in kept and (name not in state or state[name].shape != own[name].shape)]
    extra = [name for name in state if name not in own]
    if wrong or extra:
        raise ValueError(
            f"{path} does not fit this model: missing or of another shape: {wrong[:5]}; not in the model: {extra[:5]}"
        )
    model.load_state_dict({name: own[name] if name in kept else state[name] for name in own})
    return kept


def _read_state(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a weights file by name, nothing unpickled."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "Weights only load failed" not in str(error) or "Unsupported operand" in str(error):
            raise ValueError(f"{path} is no file that torch.save wrote, or is damaged") from None
        raise ValueError(
            f"{path} holds more than tensors (a whole pickled model, or other objects) and is not read, since that can run "
            "code: save the weights with torch.save(model.state_dict(), path)"
        ) from None
    except Exception as error:  # OSError, RuntimeError, EOFError, KeyError, …: torch names no common class
        raise ValueError(f"{path} is damaged or was not written by torch.save ({type(error).__name__})") from None
    for key in ("model", "state_dict"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not state or not all(isinstance(v, torch.Tensor) for v in state.values()):
        raise ValueError(f"{path} must hold a state dict, names with tensors, got {type(state).__name__}")
    for prefix in _WRAPPERS:
        if all(str(name).startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    return state


_WRAPPERS = ("_orig_mod.", "module.")  # of torch.compile and of (Distributed)DataParallel


def _resolve(name_or_factory: str | ModelFactory) -> ModelFactory:
    if callable(name_or_factory):
        return name_or_factory
    if name_or_factory in MODELS:
        return MODELS[name_or_factory]
    if not is_reference(name_or_factory):
        raise ValueError(
            f"model must be one of {', '.join(MODELS)} or 'package.module:function', got {name_or_factory!r}"
        )
    try:
        found = load_object(name_or_factory)
    except ValueError as error:
        raise ValueError(f"model {error}") from error
    if not callable(found):
        raise ValueError(f"model {name_or_factory!r} is not callable")
    return found  # type: ignore[no-any-return]


def _accepts(factory: ModelFactory, name: str) -> bool:
    # By name only: torchvision's factories hand **kwargs on to networks that know no `in_channels`.
    return name in inspect.signature(factory).parameters


@contextlib.contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
