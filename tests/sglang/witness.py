# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plug-in beside wavejit's in SGLang's processes: holds each call of a layer against float64, one of its sequences against itself alone,
and writes what it saw to the file that WAVEJIT_WITNESS names, a line a call."""
import json
import os

import torch
from exact import attention


def register():
    import wavejit.sglang
    from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

    wavejit.sglang.register()
    make = ATTENTION_BACKENDS[wavejit.sglang.NAME]
    ATTENTION_BACKENDS[wavejit.sglang.NAME] = lambda runner: watched(make(runner))


def watched(backend):
    attend, calls = backend.attend, [0]

    def seen(q, layer, words):
        sinks = words.get("sinks")
        out = attend(q, layer, dict(words))
        calls[0] += 1
        with open(os.environ["WAVEJIT_WITNESS"], "a", encoding="utf-8") as file:
            file.write(json.dumps(judged(backend, attend, q, layer, words, sinks, out, calls[0])) + "\n")
        return out

    backend.attend = seen
    return backend


def judged(backend, attend, q, layer, words, sinks, out, call):
    metadata = backend.forward_metadata
    k, v = (backend.paged(buffer) for buffer in (backend.pool.get_key_buffer(layer.layer_id), backend.pool.get_value_buffer(layer.layer_id)))
    query = q.reshape(-1, layer.tp_q_head_num, layer.qk_head_dim)
    output = out.view(query.shape[0], layer.tp_q_head_num, layer.v_head_dim)
    window = layer.sliding_window_size if layer.sliding_window_size > -1 else None
    exact, size = attention(query, k, v, metadata.query_starts, metadata.key_lengths, metadata.block_table, scale=layer.scaling, window_left=window, softcap=layer.logit_cap, sinks=sinks)
    error = float(((output.double() - exact).abs() / (size + 2.0**-20)).max())
    lengths = metadata.query_starts.diff()
    sequence = call % lengths.numel()
    begin, end = metadata.query_starts[sequence : sequence + 2].tolist()
    length = int(metadata.key_lengths[sequence])
    alone = type(metadata)(torch.tensor([0, end - begin], dtype=torch.int32), metadata.key_lengths[sequence : sequence + 1].clone(),
                           metadata.block_table[sequence : sequence + 1, : -(-length // backend.page)].clone(), end - begin, length)
    backend.forward_metadata = alone
    try:
        found = attend(query[begin:end].reshape(end - begin, -1).clone(), layer, dict(words))
    finally:
        backend.forward_metadata = metadata
    same = torch.equal(found.view(torch.int16), out[begin:end].view(torch.int16))
    statistics = backend.serving.engine.statistics()
    return {"layer": layer.layer_id, "error": error, "rows": lengths.tolist(), "keys": metadata.key_lengths.tolist(), "alone": same, "window": window,
            "refused": statistics["refused_sealed"], "sealed": backend.serving.sealed}
