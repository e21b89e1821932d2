"""The models people have: ResNets, VGG-like nets, `.view()`, normalisation inside and outside, double and half precision."""

from __future__ import annotations

import pytest
from helpers.explain_nets import images, nn, one_thread, seeded, small_net, torch  # noqa: F401

from roarfast.explain import Explainer, Normalized, Options, explain

RAW = "none(raw)"
FEW = Options(ig_steps=2, noise_samples=2)
NAMES = ["grad", "gi", "ig", "gb", "gc", "sg", "vg(gb)"]


def reference_gradient(model, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(model(x).amax(1).sum(), x)[0]


def check(model, x, layer, names=NAMES):
    explainer = Explainer(model, names, options=FEW, aggregate=RAW, batch_size=4)
    maps = explainer(x)
    gradient = reference_gradient(model.eval(), x)
    torch.testing.assert_close(maps["grad"], gradient, rtol=1e-4, atol=1e-5 * gradient.abs().max().item())
    assert explainer._layer[0] == layer
    assert (maps["gb"] - maps["grad"]).abs().max() > 0
    for name, a in maps.items():
        assert a.isfinite().all() and (name == "gc" or a.abs().max() > 0), name
    return maps


def torchvision_models():
    helper = pytest.importorskip("roarfast._torchvision")
    try:
        return helper.import_torchvision("models")
    except ModuleNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_torchvision_resnets(name):
    """In-place ReLU modules, each used two or three times in a block."""
    model = seeded(lambda: getattr(torchvision_models(), name)(num_classes=5))
    small = Explainer(model, "gc")
    small(images(1, size=32))
    assert small._layer[0] == "layer3"  # at this size, layer4 has a single pixel
    x = images(1, size=64)
    maps = check(model, x, "layer4", ["grad", "gb", "gc"])
    # Guided backprop by brute force: every ReLU replaced by one whose backward pass is guided.
    twin = seeded(lambda: getattr(torchvision_models(), name)(num_classes=5))
    for module in twin.modules():
        if hasattr(module, "relu"):
            module.relu = Guided()
    expected = reference_gradient(twin, x)
    torch.testing.assert_close(maps["gb"], expected, rtol=1e-4, atol=1e-5 * expected.abs().max().item())


class Guided(nn.Module):
    """relu(x), with the gradient clamped by a hook."""

    def forward(self, x):
        y = x.clamp(min=0)
        x.register_hook(lambda g: g.clamp(min=0))
        return y.view_as(y)


class VggLike(nn.Module):
    """The structure of torchvision's VGG with batch norm, without its 100 million weights."""

    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for width in (8, 16):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            layers.append(nn.MaxPool2d(2, 2))
            channels = width
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((3, 3))
        self.classifier = nn.Sequential(nn.Linear(144, 20), nn.ReLU(True), nn.Dropout(), nn.Linear(20, 5))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def test_vgg_like():
    check(seeded(VggLike).train(), images(2, size=16), "features")


def test_resnet8_and_convnet():
    models = pytest.importorskip("roarfast.train.models")
    check(models.build_model("resnet8", 10, seed=0).eval(), images(2, size=16), "layer3")
    check(models.build_model("convnet", 10, seed=0).eval(), images(2, size=16), "features")


class WithView(nn.Module):
    """Flattens with .view(), which feature maps in channels-last layout refuse."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.fc = nn.Linear(4 * 6 * 6, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).view(x.size(0), -1))


def test_view_after_convolutions():
    check(seeded(WithView), images(3), "conv", ["grad", "gb", "gc"])


class NormalisesInPlace(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x.sub_(0.5).div_(0.25))


def test_normalisation_in_place_inside_the_model():
    net = seeded(small_net)
    x = images(3)
    before = x.clone()
    outside = explain(Normalized(net, [0.5] * 3, [0.25] * 3), x, NAMES, options=FEW, aggregate=RAW)
    inside = explain(NormalisesInPlace(net), x, NAMES, options=FEW, aggregate=RAW)
    for name in NAMES:
        torch.testing.assert_close(inside[name], outside[name])
    assert torch.equal(x, before)


def test_normalized_explains_in_the_units_of_the_image():
    net, x = seeded(small_net), images(3)
    mean, std = torch.tensor([0.4, 0.5, 0.6]), torch.tensor([0.2, 0.25, 0.5])
    z = (x - mean.reshape(3, 1, 1)) / std.reshape(3, 1, 1)
    raw = explain(net, z, ["grad", "gc"], aggregate=RAW)
    image = explain(Normalized(net, mean, std), x, ["grad", "gc"], aggregate=RAW)
    torch.testing.assert_close(image["grad"], raw["grad"] / std.reshape(3, 1, 1), rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(image["gc"], raw["gc"])
    with pytest.raises(ValueError, match="std must be > 0"):
        Normalized(net, [0.5], [0.0])
    with pytest.raises(ValueError, match="one length"):
        Normalized(net, [0.5, 0.5], [1.0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_batches_follow_the_models_precision(dtype):
    model = seeded(small_net).to(dtype)
    maps = explain(model, images(2), ["grad", "sg"], aggregate=RAW)
    assert maps["grad"].dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_grad_cam_after_an_in_place_relu_sees_the_layers_own_output():
    x = images(3)
    separate, in_place = seeded(small_net), seeded(lambda: small_net(in_place=True))
    for relu in (False, True):
        options = Options(gc_layer="4", gc_relu=relu)  # the convolution before the last ReLU
        a, b = (explain(m, x, "gc", options=options, aggregate="none(raw)")["gc"] for m in (separate, in_place))
        torch.testing.assert_close(a, b)


def test_grad_cam_alone_runs_backward_to_its_layer_only():
    class Blocked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise AssertionError("the backward pass went past the layer")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = seeded(small_net)

        def forward(self, x):
            return self.net(Blocked.apply(x))

    explain(Net(), images(2), "gc")


def test_bad_layers():
    net = seeded(small_net)
    with pytest.raises(ValueError, match=r"gc_layer must be a module of the model, got 'layer4'\. Its modules: 0, 1"):
        explain(net, images(1), "gc", options=Options(gc_layer="layer4"))
    wrapped = Normalized(net, [0.5] * 3, [0.25] * 3)  # as studies wrap it: the names are still those of the net
    with pytest.raises(ValueError, match=r"got 'layer4'\. Its modules: 0, 1"):
        explain(wrapped, images(1), "gc", options=Options(gc_layer="layer4"))
    one, two = (explain(wrapped, images(1), "gc", options=Options(gc_layer=n))["gc"] for n in ("0", "model.0"))
    assert torch.equal(one, two)
    with pytest.raises(ValueError, match=r"'8' returns \(1, 4\)"):
        explain(net, images(1), "gc", options=Options(gc_layer="8"))
    with pytest.raises(ValueError, match="name a layer with gc_layer"):
        explain(nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), images(1), "gc")


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_guided_backprop_says_that_it_cannot_see_into_torchscript():
    scripted = torch.jit.script(seeded(small_net))
    with pytest.raises(ValueError, match="TorchScript"):
        explain(scripted, images(1), "gb")
    assert explain(scripted, images(1), "grad")["grad"].shape == (1, 8, 8)


def test_constant_models_are_an_error():
    class Constant(nn.Module):
        def forward(self, x):
            return torch.ones(len(x), 2)

    with pytest.raises(ValueError, match="does not depend on its input"):
        explain(Constant(), images(2), "grad")
