"""ROAR has no model part: whichever of two models trained alike was explained, the expected score is the same."""

import numpy as np

import roarfast as rf

FEATURES, TRAIN, TEST, DROP = 16, 60, 400, 0.4


def least_squares(x, y, ridge=1.0):
    """A linear classifier: the weights of ridge regression onto ±1."""
    return np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ (2 * y - 1.0))


def draw(rng, signal, n):
    y = rng.integers(0, 2, n)
    return (2 * y - 1)[:, None] * signal + rng.standard_normal((n, signal.size)), y


def removed(x, weights):
    """x with the features of the largest contributions to the model's answer at 0."""
    a = x * weights * np.sign(x @ weights)[:, None]
    return np.where(rf.removal_mask(a, DROP, ndim=1), 0, x)


def test_roar_has_none_and_removal_without_retraining_has_one():
    """300 pairs of models from independent training sets; masks of z and of z' on the same images."""
    rng = np.random.default_rng(0)
    signal = np.full(FEATURES, 0.25)
    roar, plain = [], []
    for _ in range(300):
        z, other = (least_squares(*draw(rng, signal, TRAIN)) for _ in range(2))
        (x, y), (x_test, y_test) = draw(rng, signal, 300), draw(rng, signal, TEST)
        scores = []
        for explained in (z, other):
            again = least_squares(removed(x, explained), y)  # retrained: it never meets z
            scores.append((((removed(x_test, explained) @ again) > 0) == y_test).mean())
        roar.append(scores[1] - scores[0])
        own, foreign = (((removed(x_test, explained) @ z > 0) == y_test).mean() for explained in (z, other))
        plain.append(foreign - own)
    for differences, exists in ((roar, False), (plain, True)):
        mean, error = np.mean(differences), np.std(differences, ddof=1) / np.sqrt(len(differences))
        assert (mean > 5 * error) == exists, (mean, error)
        if not exists:
            assert abs(mean) < 3 * error, (mean, error)
