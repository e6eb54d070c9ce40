# SPDX-License-Identifier: Apache-2.0
"""Runs lines of PyTorch and NumPy and writes what they gave, for tst_view_code.

    python view_code.py > view_code.json

A case is {"shape", "views", "torch", "numpy", "size", "stride", "bytes"}: stride of the PyTorch tensor in
elements, bytes the strides of the NumPy array.
"""
import json

import numpy as np
import torch

CASES = [
    ([2, 3, 4], "transpose(0,1);narrow(2,1,2)", "x.transpose(0, 1).narrow(2, 1, 2)", "x.swapaxes(0, 1)[:, :, 1:3]"),
    ([2, 3, 4], "permute(2,0,1)", "x.permute(2, 0, 1)", "x.transpose(2, 0, 1)"),
    ([5, 6], "t();contiguous()", "x.t().contiguous()", "np.ascontiguousarray(x.T)"),
    ([5, 6], "slice(1,none,none,2)", "x[:, ::2]", "x[:, ::2]"),
    ([5, 6], "slice(-2,1,4)", "x[..., 1:4, :]", "x[1:4:1]"),
    ([5, 6], "select(1,-1)", "x.select(1, -1)", "x[:, -1]"),
    ([1, 6], "expand(3,-1)", "x.expand(3, -1)", "np.broadcast_to(x, (3, 6))"),
    ([5, 6], "unsqueeze(0);squeeze()", "x.unsqueeze(0).squeeze()", "np.expand_dims(x, 0).reshape(5, 6)"),
    ([4, 6], "view(2,2,-1)", "x.view(2, 2, -1)", "x.reshape(2, 2, 6)"),
    ([4, 6], "flatten()", "x.flatten()", "x.reshape(24)"),
    ([10], "unfold(0,4,3)", "x.unfold(0, 4, 3)", "np.lib.stride_tricks.sliding_window_view(x, 4, axis=0)[::3]"),
    ([4, 6], "diagonal(1)", "x.diagonal(1)", "x.diagonal(1, 0, 1)"),
    ([4, 6], "as_strided([2,3],[1,6],2)", "x.as_strided([2, 3], [1, 6], 2)",
     "np.lib.stride_tricks.as_strided(x.ravel('K')[2:], (2, 3), (4, 24))"),
    ([2, 3, 4], "movedim(0,2)", "x.movedim([0], [2])", "np.moveaxis(x, (0,), (2,))"),
    ([4, 6], "flip(0)", "x.flip(0)", "np.flip(x, (0,)).copy()"),
    ([4, 6], "transpose(0,1);clone()", "x.transpose(0, 1).clone()", "x.swapaxes(0, 1).copy(order='K')"),
    ([2, 3, 4, 5], "contiguous(channels_last)", "x.contiguous(memory_format=torch.channels_last)",
     "np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)"),
    ([2, 3, 2, 4, 5], "contiguous(channels_last_3d)", "x.contiguous(memory_format=torch.channels_last_3d)",
     "np.ascontiguousarray(x.transpose(0, 2, 3, 4, 1)).transpose(0, 4, 1, 2, 3)"),
    ([2, 3], "repeat(2,1)", "x.repeat(2, 1)", "np.tile(x, (2, 1))"),
    ([7, 2], "chunk(3,0,2)", "x.chunk(3, dim=0)[2]", "x[6:7]"),
    ([7, 2], "neg()", "x.neg()", "(-x)"),
    ([7, 2], "sum_dim(0,true)", "x.sum(0, keepdim=True)", "x.sum(axis=0, keepdims=True)"),
    ([4, 6], "view(5,5);transpose(0,1)", "x.transpose(0, 1)", "x.swapaxes(0, 1)"),
]

lines = []
for shape, views, torch_line, numpy_line in CASES:
    count = int(np.prod(shape))
    scope = {"torch": torch, "np": np}
    t = eval(torch_line, {**scope, "x": torch.arange(count, dtype=torch.float32).reshape(shape)})
    a = eval(numpy_line, {**scope, "x": np.arange(count, dtype=np.float32).reshape(shape)})
    assert np.array_equal(a, t.numpy()), torch_line
    lines.append(json.dumps({"shape": shape, "views": views, "torch": torch_line, "numpy": numpy_line,
                             "size": list(t.shape), "stride": list(t.stride()), "bytes": list(a.strides)},
                            separators=(",", ":")))
print('{"torch":"%s","numpy":"%s","cases":[\n%s\n]}' % (torch.__version__, np.__version__, ",\n".join(lines)))
