# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that stand in memory once for all batches, heads or rows: a stride of 0, as `expand` makes it. Kernels read them where they lie,
and what must be copied is copied once."""
from __future__ import annotations

from collections.abc import Callable

import torch

from .._errors import InvalidArgument


def without_repeats(tensor: torch.Tensor, dimensions: int = 3) -> torch.Tensor:
    """The tensor with sizes of 1 where its strides are 0, among its first `dimensions`."""
    for dimension, (size, stride) in enumerate(zip(tensor.shape[:dimensions], tensor.stride())):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def changed_once(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """What `change` makes of each element, where it stands as often as the tensor has it."""
    made = change(without_repeats(tensor))
    return made if made.shape == tensor.shape else made.expand(tensor.shape)


def stand_once(field: str, tensor: torch.Tensor) -> None:
    """Refuses to write to a tensor two elements of which are one number in memory, as `expand` makes them: the last of them would win."""
    if 0 not in tensor.shape and any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride())):
        raise InvalidArgument(f"{field}: shape {tuple(tensor.shape)}, strides {tensor.stride()}; accepted: a stride of 0 in no dimension, as it is written")
