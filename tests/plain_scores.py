"""What the compiled loops compute for one or many regions, in one expression per geometry."""

import numpy as np

from conekg.model.kernels.tile import BOX, CONE


def plain_scores(
    geometry: int,
    points: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    center_weight: float,
) -> np.ndarray:
    """[rows, entities] the distances from regions (first, second); angles in radians for cones."""
    if geometry == CONE:
        return cones(points, first, second, center_weight)
    if geometry == BOX:
        return boxes(points, first, second, center_weight)
    return np.abs(points[None] - first[:, None]).sum(axis=-1)


def cones(
    angles: np.ndarray, axis: np.ndarray, half_aperture: np.ndarray, center_weight: float
) -> np.ndarray:
    """The distances from cones."""
    half_difference = (angles[None] - axis[:, None]) / 2
    x, y = np.abs(np.sin(half_difference)), np.abs(np.cos(half_difference))
    sine = np.abs(np.sin(half_aperture / 2))[:, None]
    cosine = np.abs(np.cos(half_aperture / 2))[:, None]
    outside = np.maximum(0, x * cosine - y * sine)
    return (outside + center_weight * np.minimum(x, sine)).sum(axis=-1)


def boxes(
    points: np.ndarray, center: np.ndarray, offset: np.ndarray, center_weight: float
) -> np.ndarray:
    """The distances from boxes, whose offsets may be negative."""
    difference = np.abs(points[None] - center[:, None])
    outside = np.maximum(0, difference - offset[:, None])
    inside = np.abs(np.minimum(difference, offset[:, None]))
    return (outside + center_weight * inside).sum(axis=-1)
