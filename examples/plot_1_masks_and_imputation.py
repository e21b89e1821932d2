"""
Masks and imputation on a photo
===============================

From an attribution map to an image without its most relevant pixels: rank codes, masks, and ROAD's noisy linear
imputation. A Sobel filter stands in for an attribution map, so that nothing is trained here.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.data import chelsea

import roarfast as rf

photo = chelsea()[:300, 75:375].astype(np.float32) / 255  # [H, W, C]
image = np.ascontiguousarray(photo.transpose(2, 0, 1))  # [C, H, W]

# %%
# A map has one value per pixel. Here: how strong the edges are, and the same map blurred.

grey = image.mean(0)
edges = np.hypot(rf.sobel(grey, axis=0), rf.sobel(grey, axis=1))
smooth = rf.gaussian_filter(edges, sigma=4)

# %%
# ``removal_mask`` marks the top fraction: exactly that many pixels, ties broken by a hash, so that there is no bias. True
# means removed, everywhere in this package.

masks = {name: rf.removal_mask(a, drop=0.3) for name, a in {"edges": edges, "blurred": smooth}.items()}
for name, mask in masks.items():
    tv = float(rf.total_variation(mask.astype(np.float32), normalize="mean"))
    print(f"{name}: {mask.mean():.4f} removed, total variation {tv:.2f}")

# %%
# Both masks remove as much. What a model sees afterwards is another matter: linear imputation restores scattered pixels
# from their neighbours, and cannot restore a region.

figure, axes = plt.subplots(2, 4, figsize=(11, 5.8), constrained_layout=True)
for row, (name, a) in zip(axes, {"edges": edges, "blurred": smooth}.items()):
    mask = masks[name]
    shown = {
        f"{name}: the map": a,
        "removed at t = 0.3": mask,
        "filled with the mean": rf.fill(image, mask, "image_mean").transpose(1, 2, 0),
        "imputed": np.clip(rf.impute_linear(image, mask, noise=0.01, seed=0), 0, 1).transpose(1, 2, 0),
    }
    for axis, (title, picture) in zip(row, shown.items()):
        axis.imshow(picture, cmap="magma" if picture is a else "gray")
        axis.set_title(title)
        axis.axis("off")
plt.show()

# %%
# One byte per pixel serves every rate: ``codes <= j`` are the pixels removed at ``drops[j]``.

drops = np.linspace(0.05, 0.95, 19)
codes = rf.rank_codes(edges, drops)
removed = [(codes <= j).mean() for j in range(len(drops))]
print("largest distance of the removed fraction from its rate:", float(np.abs(np.array(removed) - drops).max()))

figure, axis = plt.subplots(figsize=(5, 4), constrained_layout=True)
picture = axis.imshow(np.append(drops, 1)[codes], cmap="viridis_r")
figure.colorbar(picture, label="removed from this rate on")
axis.axis("off")
plt.show()
