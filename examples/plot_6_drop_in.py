"""
Drop-in for SciPy, ROAD and grad-cam
====================================

Change an import, keep the numbers. ``roarfast.compat`` has the peers' names and signatures; calls outside what is known to be
equal are passed on to the original, and ``status()`` counts both. None of the other packages but SciPy is needed here. Code that
uses Quantus, or pytorch-grad-cam itself, stays as it is under ``with roarfast.compat.patch("quantus", "grad-cam"):``.
"""

import time

import numpy as np
import scipy.ndimage
from skimage.data import astronaut

import roarfast.compat
from roarfast.compat import ndimage

maps = np.stack([np.rot90(astronaut()[..., c], k) for k in range(4) for c in range(3)]).astype(np.float32)

# %%
# scipy.ndimage: the same call, the same numbers.


def fastest(function, *args, repeats=3, **kwargs):
    """The result and the least time of several calls."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        result = function(*args, **kwargs)
        times.append(time.perf_counter() - begun)
    return result, min(times)


for name, arguments in {"gaussian_filter": {"sigma": (0, 2, 2)}, "maximum_filter": {"size": (1, 5, 5)}}.items():
    theirs, slow = fastest(getattr(scipy.ndimage, name), maps, **arguments)
    ours, fast = fastest(getattr(ndimage, name), maps, **arguments)
    print(f"{name}: {slow / fast:.0f} times as fast, largest difference {np.abs(ours - theirs).max():.1e} of 255")

# %%
# What is outside our domain goes to SciPy, and is counted with its reason.

ndimage.gaussian_filter(astronaut()[..., 0], sigma=2)  # bytes: SciPy truncates after every axis
print(roarfast.compat.status()["scipy"])

# %%
# ROAD's imputer from pytorch-grad-cam, for one image ``[C, H, W]`` in torch, without that package installed:

import torch

from roarfast.compat.grad_cam import NoisyLinearImputer

image = torch.from_numpy(astronaut().transpose(2, 0, 1).copy()).float() / 255
keep = torch.from_numpy(scipy.ndimage.gaussian_filter(np.random.default_rng(0).normal(size=(512, 512)), 8) < 0).float()
imputed, seconds = fastest(NoisyLinearImputer(noise=0.01), image, keep, repeats=1)
print(f"{int((keep == 0).sum())} pixels of 512x512 imputed in {seconds:.2f} s")

# %%
# Its ROAD score, averaged over nine percentiles and both orders, of two maps of one image by a small model:

from roarfast.compat.grad_cam import ROADCombined

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 5, 2),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(8, 3),
).eval()
small = torch.nn.functional.interpolate(image[None], 64)
shown = small.clone().requires_grad_()
model(shown)[0, 0].backward()
gradient = shown.grad[0].abs().sum(0).numpy()
cams = np.stack([gradient, scipy.ndimage.gaussian_filter(gradient, 2)])
print("plain, blurred:", ROADCombined()(small.expand(2, -1, -1, -1), cams, [lambda out: out[0]] * 2, model))

# %%
# ROAD's own benchmark, from its code: accuracy and probability with shares of the pixels removed.

from roarfast.compat import road

data = [(picture, i % 3) for i, picture in enumerate(torch.rand(6, 3, 16, 16))]
explanations = np.random.default_rng(1).random((6, 16, 16, 1)).astype(np.float32)
accuracy, probability = road.run_road(model, data, explanations, None, [0.1, 0.5, 0.9], num_workers=0, mode="fixed")
print("accuracy", accuracy.tolist(), "probability of the class", [round(p, 3) for p in probability.tolist()])
