# NumPy arithmetic on arrays of any type is typed as Any:
# mypy: disable-error-code="no-any-return, no-untyped-call"
"""MX formats: values packed by four with one exponent per group of 8 partitions x 4 values.

A group's scale is 2**(exponent - 127) (OCP Microscaling Formats 1.0, e8m0). A quadrant of 32 partitions
holds four groups; their exponents lie on the quadrant's first four partitions when the scale tile spans
whole quadrants, and on consecutive partitions when it holds one row per group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Array
from neuron_tools.nki.conversion import as_element
from neuron_tools.nki.dtypes import DType

if TYPE_CHECKING:
    from neuron_tools.nki.tensor import NkiTensor

GROUP_PARTITIONS = 8
QUADRANT = 32
BIAS = 127
_HALF_BYTE = np.dtype(ml_dtypes.float4_e2m1fn)


def scale_partitions(data_partitions: int, scale_rows: int) -> npt.NDArray[np.int64]:
    """Row of the scale tile of each group of 8 data partitions; int64 of shape (P / 8,)."""
    groups = np.arange(data_partitions // GROUP_PARTITIONS)
    if scale_rows <= len(groups):
        return np.asarray(groups)
    per_quadrant = QUADRANT // GROUP_PARTITIONS
    return np.asarray(groups // per_quadrant * QUADRANT + groups % per_quadrant)


def unpacked(packed: Array, dtype: DType) -> Array:
    """(..., F) packed values to (..., F, 4) fp32."""
    raw = np.ascontiguousarray(packed).reshape(-1).view(np.uint8)
    if dtype.element == _HALF_BYTE:
        raw = np.stack([raw & np.uint8(15), raw >> np.uint8(4)], axis=-1).reshape(-1)
    return as_element(raw.view(dtype.element), np.dtype(np.float32)).reshape(*packed.shape, 4)


def packed(elements: Array, dtype: DType) -> Array:
    """(..., 4 F) values of an MX type to (..., F) unsigned integers of the packed type's size."""
    raw = np.ascontiguousarray(elements).view(np.uint8)
    if dtype.element == _HALF_BYTE:
        raw = (raw[..., 0::2] & np.uint8(15)) | (raw[..., 1::2] << np.uint8(4))
    return raw.view(dtype.dtype)


def dequantized(data: NkiTensor, scale: NkiTensor) -> Array:
    """An MX operand as fp32 of shape (P * 4, F): the contraction runs over partitions and packed values."""
    held = data.array.reshape(data.shape[0], -1)
    values = unpacked(held, data.dtype)
    exponents = scale.array.reshape(scale.shape[0], -1)
    rows = scale_partitions(len(held), len(exponents))
    factors = np.exp2(exponents[rows].astype(np.float32) - BIAS)[:, : held.shape[1]]
    values = values * np.repeat(factors, GROUP_PARTITIONS, axis=0)[:, :, None]
    return values.transpose(0, 2, 1).reshape(-1, held.shape[1])


def quantized(values: Array, dtype: DType) -> tuple[Array, Array]:
    """fp32 (P, F) to packed (P, F / 4) and exponents uint8 (P / 8, F / 4)."""
    partitions, width = values.shape
    groups = values.reshape(partitions // GROUP_PARTITIONS, GROUP_PARTITIONS, width // 4, 4)
    largest = np.abs(groups).max(axis=(1, 3))
    top = int(np.floor(np.log2(float(ml_dtypes.finfo(dtype.element).max))))
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log2(np.where(largest > 0, largest, 1.0))).astype(np.int64) - top
    exponents = np.clip(exponent + BIAS, 0, 254).astype(np.uint8)
    factor = np.exp2(exponents.astype(np.float32) - BIAS)[:, None, :, None]
    limit = np.float32(ml_dtypes.finfo(dtype.element).max)
    scaled = as_element(np.clip(groups / factor, -limit, limit), dtype.element)
    return packed(scaled.reshape(partitions, width), dtype), exponents
