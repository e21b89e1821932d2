"""
Drop-in for SciPy, ROAD and grad-cam
====================================

Change an import, keep the numbers. ``roarfast.compat`` has the peers' names and signatures; calls outside what is known to be
equal are passed on to the original, and ``status()`` counts both. Quantus and pytorch-grad-cam themselves are patched with
``with roarfast.compat.patch("quantus", "grad-cam"):``; they are not needed here.
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

ndimage.gaussian_filter(maps[0], sigma=2, order=1)  # a derivative of the Gaussian
print(roarfast.compat.status())

# %%
# ROAD's imputer from pytorch-grad-cam, for one image ``[C, H, W]`` in torch, without that package installed:

import torch

from roarfast.compat.grad_cam import NoisyLinearImputer

image = torch.from_numpy(astronaut().transpose(2, 0, 1).copy()).float() / 255
keep = torch.from_numpy(scipy.ndimage.gaussian_filter(np.random.default_rng(0).normal(size=(512, 512)), 8) < 0).float()
imputed, seconds = fastest(NoisyLinearImputer(noise=0.01), image, keep, repeats=1)
print(f"{int((keep == 0).sum())} pixels of 512x512 imputed in {seconds:.2f} s")
