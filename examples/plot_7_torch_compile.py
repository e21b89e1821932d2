"""
Kernels under torch.compile
===========================

Every op is a torch operator with a shape function, so graphs are not broken by it. No op has a derivative: a result carries no gradient, and a
backward pass that comes to it says so.
"""

import torch

import roarfast as rf


@torch.compile(fullgraph=True, backend="aot_eager")
def masked(images, maps):
    """Images without the most relevant 30 % of their pixels, scaled."""
    mask = rf.removal_mask(rf.gaussian_filter(maps, sigma=1.0), drop=0.3)
    return 2 * rf.fill(images, mask, 0.0) - 1


images, maps = torch.rand(4, 3, 32, 32), torch.rand(4, 32, 32)
compiled = masked(images, maps)
mask = rf.removal_mask(rf.gaussian_filter(maps, sigma=1.0), drop=0.3)
eager = 2 * rf.fill(images, mask, 0.0) - 1
print("equal to the eager result:", torch.equal(compiled, eager))

# %%
# The operators by name, as other frameworks' tools see them:

print(torch.ops.roarfast.total_variation.default._schema)
print(sorted(name for name in dir(torch.ops.roarfast) if not name.startswith("_"))[:8])
