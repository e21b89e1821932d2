"""Agreement with captum to 1e-5 where it has the method, and captum objects as estimators."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.explain_nets import RELU_STYLES, ReluStyles, images, one_thread, seeded, small_net, torch  # noqa: F401

from roarfast.explain import Explainer, External, Options, explain, from_captum

captum_attr = pytest.importorskip("captum.attr")
pytestmark = pytest.mark.filterwarnings("ignore:Setting backward hooks", "ignore:Input Tensor", "ignore:Layer")

RAW = "none(raw)"
X = images(6)


def close(a, b):
    scale = b.abs().max().item()
    torch.testing.assert_close(a, b.detach(), rtol=1e-5, atol=1e-5 * scale)


@pytest.fixture(scope="module")
def net():
    return seeded(small_net)


@pytest.fixture(scope="module")
def target(net):
    with torch.no_grad():
        return net(X).argmax(1)


def test_gradients(net, target):
    maps = explain(net, X, ["grad", "gi", "gb"], aggregate=RAW)
    close(maps["grad"], captum_attr.Saliency(net).attribute(X, target=target, abs=False))
    close(maps["gi"], captum_attr.InputXGradient(net).attribute(X, target=target))
    close(maps["gb"], captum_attr.GuidedBackprop(net).attribute(X, target=target))


@pytest.mark.parametrize("method", ["left", "right", "middle", "trapezoid", "gausslegendre"])
def test_integrated_gradients(net, target, method):
    options = Options(ig_method=method, ig_steps=9, ig_baseline=0.25)
    maps = explain(net, X, "ig", options=options, aggregate=RAW, batch_size=16)
    theirs = method if method == "gausslegendre" else f"riemann_{method}"
    expected = captum_attr.IntegratedGradients(net).attribute(
        X, baselines=0.25, target=target, n_steps=9, method=theirs
    )
    # captum's trapezoid has weights 1/n where the n - 1 intervals have length 1/(n - 1).
    close(maps["ig"], expected * (9 / 8 if method == "trapezoid" else 1))


def test_integrated_gradients_are_complete(net, target):
    with torch.no_grad():
        difference = (net(X) - net(torch.zeros_like(X))).gather(1, target[:, None])[:, 0]
    errors = {}
    for steps in (10, 200):
        options = Options(ig_steps=steps, ig_method="middle")
        total = explain(net, X, "ig", options=options, aggregate=RAW)["ig"].sum((1, 2, 3))
        errors[steps] = (total - difference).abs().max().item()
    assert errors[200] < 5e-3 * difference.abs().max().item()
    assert errors[200] < errors[10]


@pytest.mark.parametrize("layer", ["0", "3", "4", "5"])
@pytest.mark.parametrize("relu", [False, True])
def test_grad_cam(net, target, layer, relu):
    maps = explain(net, X, "gc", options=Options(gc_layer=layer, gc_relu=relu), aggregate=RAW)
    cam = captum_attr.LayerGradCam(net, net[int(layer)]).attribute(X, target=target, relu_attributions=relu)
    close(maps["gc"], captum_attr.LayerAttribution.interpolate(cam, (8, 8), "bilinear"))


def test_noise_tunnel_agrees_on_its_own_noise(net, target):
    """SG, SG-SQ and VG against captum's, which draws its own noise: equal when there is none to speak of."""
    options = Options(noise=1e-6, noise_absolute=True, noise_samples=3)
    maps = explain(net, X, ["sg", "sg-sq"], options=options, aggregate=RAW)
    tunnel = captum_attr.NoiseTunnel(captum_attr.Saliency(net))
    for name, kind in (("sg", "smoothgrad"), ("sg-sq", "smoothgrad_sq")):
        expected = tunnel.attribute(X, nt_type=kind, nt_samples=3, stdevs=1e-6, target=target, abs=False)
        torch.testing.assert_close(maps[name], expected, rtol=1e-3, atol=1e-3 * expected.abs().max().item())


@pytest.mark.parametrize("style", RELU_STYLES)
def test_guided_backprop_sees_every_relu(style):
    """All spellings of one function give the map that captum gives for separate modules."""
    separate, other = seeded(lambda: ReluStyles("modules")), seeded(lambda: ReluStyles(style))
    target = separate(X).argmax(1)
    expected = captum_attr.GuidedBackprop(separate).attribute(X, target=target)
    plain = explain(separate, X, "grad", aggregate=RAW)["grad"]
    assert (plain - expected).abs().max() > 0.1 * expected.abs().max()  # the rule matters here
    close(explain(other, X, "gb", aggregate=RAW)["gb"], expected)


@pytest.mark.parametrize("style", RELU_STYLES)
def test_plain_gradients_after_guided_ones_are_plain(style):
    model = seeded(lambda: ReluStyles(style))
    maps = explain(model, X, ["grad", "gb"], aggregate=RAW)
    again = explain(model, X, ["gb", "grad"], aggregate=RAW)
    close(maps["grad"], seeded_gradient(model))
    torch.testing.assert_close(maps["grad"], again["grad"])
    torch.testing.assert_close(maps["gb"], again["gb"])


def seeded_gradient(model):
    x = X.clone().requires_grad_()
    return torch.autograd.grad(model(x).amax(1).sum(), x)[0]


def test_captum_objects_are_estimators(net, target):
    occlusion = captum_attr.Occlusion(net)
    arguments = {"sliding_window_shapes": (3, 2, 2), "strides": (3, 2, 2)}
    estimator = from_captum(occlusion, **arguments)
    explainer = Explainer(net, ["grad", estimator, "occlusion^2"], aggregate="mean(raw)", batch_size=4)
    maps = explainer(X)
    expected = occlusion.attribute(X, target=target, **arguments)
    close(maps["occlusion"], expected.mean(1))
    close(maps["occlusion^2"], expected.square().mean(1))
    assert "passes of its own" in explainer.plan.describe()


def test_layer_attributions_are_upsampled(net, target):
    estimator = from_captum(captum_attr.LayerGradCam(net, net[4]), "cam4")
    maps = explain(net, X, [estimator, "gc"], options=Options(gc_layer="4", gc_relu=False), aggregate=RAW)
    close(maps["cam4"], maps["gc"])


def test_deep_lift_shap(net):
    estimator = from_captum(captum_attr.DeepLiftShap(net), "dls", baselines=torch.zeros(2, 3, 8, 8))
    model = seeded(lambda: small_net(in_place=False))
    with pytest.raises(ValueError, match="made for another model"):
        explain(model, X, estimator)
    assert explain(net, X, estimator)["dls"].shape == (6, 8, 8)


def test_functions_are_estimators(net):
    def half(model, x, target):
        assert not model.training and x.shape[0] <= 4 and target.shape == x.shape[:1]
        return x.mean(1) / 2

    maps = explain(net, X, External("half", half), batch_size=4)
    torch.testing.assert_close(maps["half"], X.mean(1) / 2)


def test_stochastic_functions_are_reproducible_and_leave_the_generator_alone(net):
    noisy = External("noisy", lambda model, x, target: torch.rand_like(x))
    state = torch.get_rng_state()
    first, second = (explain(net, X, noisy, seed=5)["noisy"] for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(first, explain(net, X, noisy, seed=6)["noisy"])


@pytest.mark.parametrize(
    "function, error, message",
    [
        (lambda m, x, t: x.numpy(), TypeError, "must return a tensor, got ndarray"),
        (lambda m, x, t: x[:1], ValueError, r"must return \[6, C, H, W\]"),
    ],
)
def test_bad_results_of_functions(net, function, error, message):
    with pytest.raises(error, match=message):
        explain(net, X, External("mine", function))


def test_bad_estimators():
    with pytest.raises(TypeError, match="must have a method attribute"):
        from_captum(np.ones(3))
    with pytest.raises(ValueError, match="built-in"):
        External("grad", lambda m, x, t: x)
