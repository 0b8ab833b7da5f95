# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's engine with models of latent attention, and a witness of each layer's call."""
import contextlib
from unittest import mock

import torch
from engines import Witness
from exact import attention
from vllm.platforms.cpu import CpuPlatform

from wavejit.vllm import WavejitLatentAttention, WavejitLatentMetadata, _cache


@contextlib.contextmanager
def as_on_a_gpu():
    """vLLM for CPUs takes chunks, prefixes and pages of its choice from models of latent attention where its own kernels have none (AMX):
    the configuration is made as if there were some."""
    check = CpuPlatform.check_and_update_config.__func__

    def checked(cls, config):
        with mock.patch.object(torch.cpu, "_is_amx_tile_supported", lambda: True):
            check(cls, config)

    with mock.patch.object(CpuPlatform, "check_and_update_config", classmethod(checked)):
        yield


class LatentWitness(Witness):
    def patch(self):
        forward = WavejitLatentAttention.forward_mqa

        def watched(layer_of, q, kv_cache, metadata, layer):
            found = forward(layer_of, q, kv_cache, metadata, layer)
            self.saw_rows(layer_of, layer, q, kv_cache, metadata, found[0])
            return found

        self.forward = forward
        return mock.patch.object(WavejitLatentAttention, "forward_mqa", watched)

    def saw_rows(self, layer_of, layer, q, kv_cache, metadata, output):
        kind = layer_of.kind
        assert output.shape[0] == metadata.num_actual_tokens, "rows of prompts came by another way"
        rows = _cache.of_type(kv_cache, kind.cache).unsqueeze(2)
        scale = float(layer._k_scale) if kind.cache else 1.0
        exact, size = attention(torch.cat(q, -1), rows, rows[..., : kind.value_dim], metadata.query_starts, metadata.key_lengths, metadata.block_table, scale=layer_of.scale,
                                k_scale=scale, v_scale=scale)  # fmt: skip
        lengths = self.hold(layer, kind, metadata, output, exact, size)
        self.row_by_itself(layer_of, layer, q, kv_cache, metadata, output, self.calls % lengths.numel())

    def row_by_itself(self, layer_of, layer, q, kv_cache, metadata, output, sequence):
        """One row of a sequence, of a prompt or of drafts, as a step that decodes it alone would have it: the same bits."""
        begin, end = metadata.query_starts[sequence : sequence + 2].tolist()
        row = begin + self.calls % (end - begin)
        length = int(metadata.key_lengths[sequence]) - (end - 1 - row)
        columns = -(-length // kv_cache.shape[1])
        single = WavejitLatentMetadata(1, torch.tensor([0, 1], dtype=torch.int32), torch.tensor([length], dtype=torch.int32),
                                       metadata.block_table[sequence : sequence + 1, :columns].clone(), 1, length, True, metadata.serving)
        found, _ = self.forward(layer_of, tuple(each[row : row + 1].clone() for each in q), kv_cache, single, layer)
        assert torch.equal(found.view(torch.int16), output[row : row + 1].view(torch.int16)), f"row {row} of {metadata.query_starts.tolist()} has other bits alone"
        self.alone += 1
