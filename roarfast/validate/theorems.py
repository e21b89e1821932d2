"""Theorems 3.1 and 3.2 of Song et al., by enumeration and through the real kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import roarfast as rf
from roarfast.metrics.information import (
    bayes_accuracy,
    conditional_mutual_information,
    entropy,
    error_bounds,
    function_channel,
    mutual_information,
    through,
)
from roarfast.validate.check import Outcome, check, exactly, show

Array = npt.NDArray[np.float64]

MODELS = 2000
SAMPLES = 100_000
_ROUNDING = 1e-9


def random_models(count: int, seed: int) -> tuple[Array, Array, Array]:
    """Random finite worlds: joints p(x, z, a) `[count, 3, 2, 4]`, channels k(ã | a) `[count, 4, 3]` and ψ(b | x, ã) `[count, 3, 3, 5]`.

    Half of the rules p(a | x, z) and of the channels are peaked (nearly functions), so that the inequality is tested
    near equality too.
    """
    rng = np.random.default_rng(seed)
    peaked = np.where(rng.random((count, 1)) < 0.5, 0.05, 1.0)

    def rows(*shape: int) -> Array:
        weights = rng.gamma(np.broadcast_to(peaked.reshape(count, *[1] * len(shape)), (count, *shape))) + 1e-300
        return np.asarray(weights / weights.sum(-1, keepdims=True), np.float64)

    p_xz = rows(6).reshape(count, 3, 2)
    return p_xz[..., None] * rows(3, 2, 4), rows(4, 3), rows(3, 3, 5)


@check(
    "theorem-3.1",
    claim="I(Z; k(A, U) | X) <= I(Z; A | X) and I(Z; psi(X, k(A, U)) | X) <= I(Z; k(A, U) | X), 2,000 random finite worlds",
    source="000, Theorem 3.1 (6), (7)",
    paper="never violated",
)
def theorem_31() -> Outcome:
    """No agnostic post-processing adds information about the model."""
    joint, k, psi = random_models(MODELS, seed=0)
    after = through(joint, k[:, None])
    before = conditional_mutual_information(joint)
    between = conditional_mutual_information(after)
    last = conditional_mutual_information(through(after, psi))
    largest = float(max((between - before).max(), (last - between).max()))
    closest = float((before - between).min())
    holds = (
        largest <= _ROUNDING and float((before - between).max()) > 0.1
    )  # some k must lose much, or this shows nothing
    values = {"largest violation": max(largest, 0.0), "smallest loss": max(closest, 0.0)}
    return Outcome(
        f"largest violation {max(largest, 0.0):.1e} bit, losses from {max(closest, 0.0):.1e} to "
        f"{float((before - between).max()):.2f} bit",
        "holds" if holds else "fails",
        values,
    )


@check(
    "theorem-3.1-masks",
    claim="the same with real masks: A enumerated maps, k blur or maximum filter, M by removal_mask, X' by fill",
    source="000, Theorem 3.1 (8)",
    paper="never violated",
)
def theorem_31_masks() -> Outcome:
    """The chain of the theorem through the kernels that studies use."""
    rng = np.random.default_rng(1)
    violation, lost = 0.0, 0.0
    images = ((np.arange(16)[:, None] >> np.arange(4)) & 1).astype(np.float32).reshape(16, 1, 2, 2)
    for _ in range(20):
        maps = rng.random((6, 2, 2)).astype(np.float32)
        joint = rng.dirichlet(np.full(16 * 2, 0.5)).reshape(16, 2, 1) * rng.dirichlet(np.full(6, 0.3), (16, 2))
        before = float(conditional_mutual_information(joint))
        for processed in (rf.gaussian_filter(maps, 1.0), rf.maximum_filter(maps, 3), rf.maximum_filter(maps, (1, 2))):
            k = function_channel(_number_rows(processed.reshape(6, -1)))
            after = through(joint, k)
            mask = rf.removal_mask(
                processed, 0.5, index=np.zeros(6, np.int64)
            )  # one id: ties fall alike, a function of the map
            removed = np.stack([rf.fill(np.repeat(x[None], 6, 0), mask, 0.0) for x in images])  # [X, A, 1, 2, 2]
            masked = through(joint, function_channel(_number_rows(mask.reshape(6, -1))))
            seen = through(joint, function_channel(_number_rows(removed.reshape(96, -1)).reshape(16, 6)))
            a, m, x = (float(conditional_mutual_information(p)) for p in (after, masked, seen))
            violation = max(violation, a - before, m - a, x - m)
            lost = max(lost, before - x)
    return Outcome(
        f"largest violation {violation:.1e} bit in 180 inequalities, up to {lost:.2f} bit lost",
        "holds" if violation <= _ROUNDING and lost > 0.01 else "fails",
        {"largest violation": violation, "largest loss": lost},
    )


@check(
    "conditioning-matters",
    claim="without the condition on X the inequality is false: I(Z; psi(X, A)) may exceed I(Z; A)",
    source="000, 'Why conditioning on X matters'",
)
def conditioning_matters() -> Outcome:
    """A = X xor Z knows nothing of Z; together with X it knows everything."""
    joint = np.zeros((2, 2, 2))
    for x in range(2):
        for z in range(2):
            joint[x, z, x ^ z] = 0.25
    xor = function_channel([[0, 1], [1, 0]])
    exact = {
        "I(Z;A)": float(mutual_information(joint.sum(0))),
        "I(Z;X xor A)": float(mutual_information(through(joint, xor).sum(0))),
    }
    joints, _, psi = random_models(MODELS, seed=2)
    wide = np.concatenate([psi, psi[..., :1, :]], -2)  # [count, X, 4, 5]: psi of (x, a) instead of (x, ã)
    gain = mutual_information(through(joints, wide).sum(-3)) - mutual_information(joints.sum(-3))
    exact["largest excess in 2,000 random worlds"] = float(gain.max())
    good = exactly(exact, {"I(Z;A)": 0, "I(Z;X xor A)": 1}, 1e-12).verdict == "holds" and gain.max() > 0.1
    return Outcome(show(exact), "holds" if good else "fails", exact)


def counterexample() -> tuple[Array, Array, Array]:
    """Theorem 3.2: the eight equally likely (x1, x2, z), maps A and maps Ã = k(A), each `[8, 2]`."""
    worlds = np.array([[x1, x2, z] for x1 in (0, 1) for x2 in (0, 1) for z in (0, 1)], np.float64)
    maps = np.where(worlds[:, 2:] == 0, [[2.0, 1.0]], [[1.0, 2.0]])
    total = maps.sum(1)
    return worlds, maps, np.stack([total, total - 0.5], 1)


@check(
    "counterexample",
    claim="k destroys all information about Z and improves the ROAR objective",
    source="000, Theorem 3.2",
    paper="I(Z;A|X) 1, I(Z;kA|X) 0, I(X';Y) > 0, I(kX';Y) 0 bit",
)
def counterexample_enumerated() -> Outcome:
    """Every number of the example, by enumeration; masks from the kernels."""
    worlds, maps, processed = counterexample()
    x, z = (worlds[:, 0] * 2 + worlds[:, 1]).astype(int), worlds[:, 2].astype(int)
    values: dict[str, float] = {}
    for tag, a in (("", maps), ("k", processed)):
        mask = rf.removal_mask(a.reshape(-1, 1, 2), 0.5, rule="strict").reshape(-1, 2)
        kept = np.where(mask, 0.0, worlds[:, :2])
        for name, variable in (("A", a), ("M", mask), ("X'", kept)):
            joint = _count(x, z, _number_rows(variable))
            values[f"I(Z;{tag}{name}|X)"] = float(conditional_mutual_information(joint))
        label = _count(_number_rows(kept), worlds[:, 0].astype(int))
        values[f"I({tag}X';Y)"] = float(mutual_information(label))
        values[f"Bayes({tag}X')"] = float(bayes_accuracy(label))
    expected = {
        "I(Z;A|X)": 1,
        "I(Z;M|X)": 1,
        "I(Z;X'|X)": 0.75,
        "I(X';Y)": 0.344361,
        "Bayes(X')": 0.75,
        "I(Z;kA|X)": 0,
        "I(Z;kM|X)": 0,
        "I(Z;kX'|X)": 0,
        "I(kX';Y)": 0,
        "Bayes(kX')": 0.5,
    }
    return exactly({k: round(v, 12) + 0.0 for k, v in values.items()}, expected, 5e-7)


@check(
    "counterexample-sampled",
    claim="the same through removal_mask and fill, 100,000 samples, a frequency table as the retrained model",
    source="000, Theorem 3.2",
    paper="X' keeps the label half of the time",
)
def counterexample_sampled() -> Outcome:
    """Half of the samples train the table, half test it."""
    worlds, maps, processed = counterexample()
    drawn = np.random.default_rng(3).integers(0, 8, SAMPLES)
    images, labels = worlds[drawn, None, None, :2].astype(np.float32), worlds[drawn, 0].astype(int)
    values: dict[str, float] = {}
    for tag, a in (("plain", maps), ("k", processed)):
        chosen = a[drawn, None].astype(np.float32)
        for rule in ("strict", "exact"):
            filled = rf.fill(images, rf.removal_mask(chosen, 0.5, rule=rule), 0.0)
            seen = filled.reshape(-1, 2) @ np.array([2, 1])
            table = np.zeros((4, 2))
            half = SAMPLES // 2
            np.add.at(table, (seen[:half].astype(int), labels[:half]), 1)
            predicted = table.argmax(1)[seen[half:].astype(int)]
            values[f"{tag}, {rule}"] = float((predicted == labels[half:]).mean())
    return exactly(values, {name: 0.75 if name.startswith("plain") else 0.5 for name in values}, 0.005)


@check(
    "dpi-does-not-order-images",
    claim="k can add to what the mask and the image tell of Z: top-1 mask of (3,1,2) or (3,2,1), k(a) = (0, a2, a3)",
    source="000, remark after Theorem 3.1",
)
def images_not_ordered() -> Outcome:
    """The data processing inequality orders maps, not masks."""
    z = np.array([0, 1])
    maps = np.array([[3.0, 1.0, 2.0], [3.0, 2.0, 1.0]])
    values: dict[str, float] = {}
    for tag, a in (("", maps), ("k", np.concatenate([np.zeros((2, 1)), maps[:, 1:]], 1))):
        mask = rf.removal_mask(a.reshape(2, 1, 3), 1 / 3).reshape(2, 3)
        image = np.where(mask, 0.0, [1.0, 2.0, 3.0])  # one x, so that conditioning on it changes nothing
        for name, variable in (("A", a), ("M", mask), ("X'", image)):
            values[f"I(Z;{tag}{name}|X)"] = float(
                conditional_mutual_information(_count(z * 0, z, _number_rows(variable)))
            )
    expected = {"I(Z;A|X)": 1, "I(Z;M|X)": 0, "I(Z;X'|X)": 0, "I(Z;kA|X)": 1, "I(Z;kM|X)": 1, "I(Z;kX'|X)": 1}
    return exactly({k: v + 0.0 for k, v in values.items()}, expected, 1e-12)


@check(
    "error-bounds",
    claim="Fano and Hellman-Raviv bracket the Bayes error: of the example (0.25 <= 0.328) and of 2,000 random joints",
    source="000, section 3, (1): accuracy stands for I(X'; Y)",
)
def bounds() -> Outcome:
    """How far accuracy can be from information."""
    low, high = error_bounds(0.344361, 1.0, 2)
    joints = np.random.default_rng(4).dirichlet(np.full(12, 0.3), MODELS).reshape(MODELS, 4, 3)
    errors = 1 - bayes_accuracy(joints)
    information, label = mutual_information(joints), entropy(joints.sum(-2))
    outside = 0
    for error, i, h in zip(errors, information, label):
        lower, upper = error_bounds(float(i), float(h), 3)
        outside += not lower - 1e-9 <= error <= upper + 1e-9
    values = {"Fano": low, "Bayes error": 0.25, "Hellman-Raviv": high, "outside": float(outside)}
    return exactly(values, {"Hellman-Raviv": 0.3278195, "outside": 0, "Fano": 0.169099}, 1e-5)


def _number_rows(rows: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """Equal rows get equal numbers, counted from 0."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _count(*variables: npt.NDArray[np.int64]) -> Array:
    """The joint distribution of equally likely outcomes."""
    joint = np.zeros([int(v.max()) + 1 for v in variables])
    np.add.at(joint, variables, 1 / len(variables[0]))
    return joint
