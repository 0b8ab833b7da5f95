# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's indexer of sparse attention by wavejit, step by step: prompts, drafts and decode against float64, alone and in batches, and on the device."""
import os
import types
import unittest
from unittest import mock

import numpy
import rocm_test
import torch
from exact import of_pages
from rocm_test import ENGINE, host, rocm, tensor_of
from vllm.model_executor.custom_op import op_registry_oot
from vllm.models.deepseek_v32.attention import DeepseekV32Indexer

import wavejit
from wavejit.vllm import _serving, _sparse_indexer
from wavejit.vllm._sparse_indexer import DIM, NAME, WavejitSparseAttnIndexer

HEADS, TOP, PAGE, PAGES = 4, 24, 16, 40
E4M3 = torch.float8_e4m3fn


def operator(cache, buffer, serving):
    """As one that vLLM made, without its configuration."""
    made = WavejitSparseAttnIndexer.__new__(WavejitSparseAttnIndexer)
    torch.nn.Module.__init__(made)
    made.k_cache, made.topk_indices_buffer = types.SimpleNamespace(prefix="layer", kv_cache=cache), buffer
    made.serving, made.topk_tokens, made.skip_k_cache_insert, made.ours = serving, TOP, True, True
    return made


class Step:
    """Sequences that decode come first, as vLLM orders them; `kind` says how it hands over those of several rows."""

    def __init__(self, decoding, prompts, kind="padded"):
        generator = torch.Generator().manual_seed(3)
        self.rows = [rows for rows, _ in (*decoding, *prompts)]
        self.lengths = torch.tensor([keys for _, keys in (*decoding, *prompts)], dtype=torch.int32)
        columns = -(-int(self.lengths.max()) // PAGE)
        self.table = torch.randperm(PAGES, generator=generator)[: len(self.rows) * columns].view(len(self.rows), -1).int()
        all_rows = sum(self.rows)
        self.queries = torch.randn(all_rows, HEADS, DIM, generator=generator).to(E4M3)
        self.weights = torch.randn(all_rows, HEADS, generator=generator)
        self.sequence = torch.repeat_interleave(torch.arange(len(self.rows)), torch.tensor(self.rows))
        starts = numpy.cumsum([0, *self.rows])
        self.seen = torch.tensor([int(self.lengths[s]) - (int(starts[s + 1]) - 1 - row) for row, s in enumerate(self.sequence.tolist())], dtype=torch.int32)
        decoded = sum(rows for rows, _ in decoding)
        lens, table, unlike = torch.tensor(self.rows[: len(decoding)]), self.table[: len(decoding)], len({rows for rows, _ in decoding}) > 1
        if kind == "flat":
            decode = types.SimpleNamespace(block_table=self.table[self.sequence[:decoded]], seq_lens=self.seen[:decoded, None], decode_lens=torch.ones(decoded), requires_padding=False)
        else:
            most = max((rows for rows, _ in decoding), default=1)
            padded = (self.lengths[: len(decoding), None] - most + 1 + torch.arange(most)).clamp(min=0).int()  # of unlike rows nobody reads it
            decode = types.SimpleNamespace(block_table=table, seq_lens=padded, decode_lens=lens, requires_padding=unlike)
        before = torch.cat([torch.zeros(1, dtype=torch.int32), self.lengths[len(decoding) :].cumsum(0).int()])
        begins = before[self.sequence[decoded:] - len(decoding)]
        chunk = types.SimpleNamespace(token_start=decoded, token_end=all_rows, num_reqs=len(prompts), block_table=self.table[len(decoding) :], cu_seq_lens=before,
                                      cu_seqlen_ks=begins, cu_seqlen_ke=begins + self.seen[decoded:])  # fmt: skip
        self.metadata = types.SimpleNamespace(num_prefills=len(prompts), prefill=types.SimpleNamespace(chunks=[chunk]), num_decode_tokens=decoded, decode=decode,
                                              seq_lens=self.lengths, max_seq_len=int(self.lengths.max()), slot_mapping=None)  # fmt: skip

    def run(self, made, forward="forward_cpu"):
        context = types.SimpleNamespace(attn_metadata={"layer": self.metadata})
        with mock.patch.object(_sparse_indexer, "get_forward_context", lambda: context):
            return getattr(made, forward)(self.queries, self.queries, None, self.weights)

    def expected(self, cache, row):
        numbers, scales = _sparse_indexer.parts_of(cache, E4M3)
        keys = of_pages(numbers.float().double() * scales.double().unsqueeze(2), self.table[self.sequence[row]], int(self.seen[row]))
        return (torch.relu(self.queries[row].double() @ keys.T) * self.weights[row].double()[:, None]).sum(0)


def cache_of(slots):
    """Written by the operator itself, from bf16."""
    cache = torch.zeros(PAGES, PAGE, DIM + 4, dtype=torch.uint8)
    made, keys = operator(cache, None, None), torch.randn(slots, DIM, generator=torch.Generator().manual_seed(5)).bfloat16()
    made._write(keys, torch.arange(slots), E4M3)
    return cache, keys


class OnCopies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.serving = _serving.Serving(wavejit.Engine(os.environ["WAVEJIT_DEVICE"]), False)
        cls.cache, cls.keys = cache_of(PAGES * PAGE)

    def hold(self, step, width=TOP):
        buffer = torch.full((sum(step.rows) + 3, width), 7, dtype=torch.int32)
        found = step.run(operator(self.cache, buffer, self.serving))
        self.assertIs(found, buffer)
        for row in range(sum(step.rows)):
            scores, listed = step.expected(self.cache, row), [key for key in found[row, :TOP].tolist() if key >= 0]
            self.assertEqual((listed, len(listed)), (sorted(set(listed)), min(TOP, scores.numel())), row)
            left = torch.ones(scores.numel(), dtype=torch.bool)
            left[listed] = False
            if left.any():
                self.assertGreaterEqual(float(scores[listed].min()), float(scores[left].max() - 1e-5 * scores.abs().max()), row)
        self.assertTrue(bool((found[sum(step.rows) :] == 7).all()))
        return found

    def test_prompts_drafts_and_decode_whatever_way_vllm_hands_them_over(self):
        mixed = [(1, 90), (3, 50), (2, 31)], [(20, 37), (9, 44)]
        padded = self.hold(Step(*mixed))
        self.assertTrue(torch.equal(padded, self.hold(Step(*mixed, kind="flat"))))
        self.hold(Step([(2, 90), (2, 50)], []))
        self.hold(Step([], [(40, 61)]))
        self.hold(Step([(1, 3)], [(5, 44)]), TOP + 8)

    def test_a_rows_list_is_that_of_the_row_alone(self):
        step = Step([(1, 90), (3, 50)], [(20, 37), (9, 44)])
        found = self.hold(step)
        for row in (0, 2, 4, 15, 23, 32):
            alone = Step([(1, int(step.seen[row]))], [])
            alone.table, alone.queries, alone.weights = step.table[step.sequence[row]][None], step.queries[row : row + 1], step.weights[row : row + 1]
            alone.metadata.decode.block_table = alone.table
            buffer = torch.zeros(1, TOP, dtype=torch.int32)
            self.assertTrue(torch.equal(alone.run(operator(self.cache, buffer, self.serving))[0], found[row]), row)

    def test_keys_are_written_with_a_power_of_two_each_and_a_slot_of_none_goes_nowhere(self):
        numbers, scales = _sparse_indexer.parts_of(self.cache, E4M3)
        stored = (numbers.float() * scales.unsqueeze(2)).flatten(0, 1)
        self.assertLess(float(((stored - self.keys.float()).abs() / self.keys.float().abs().amax(1, keepdim=True)).max()), 1 / 16)
        self.assertTrue(bool((torch.frexp(scales).mantissa == 0.5).all()))
        cache = self.cache.clone()
        operator(cache, None, None)._write(torch.ones(2, DIM), torch.tensor([-1, -1]), E4M3)
        self.assertTrue(torch.equal(cache, self.cache))

    def test_while_vllm_measures_its_memory_nothing_is_listed(self):
        buffer = torch.full((2, TOP), 7, dtype=torch.int32)
        made = operator(self.cache, buffer, None)
        with mock.patch.object(_sparse_indexer, "get_forward_context", lambda: types.SimpleNamespace(attn_metadata=None)):
            self.assertIs(made.forward_hip(torch.zeros(2, 8), None, None, None), buffer)
        self.assertTrue(bool((buffer == 7).all()))


class OnTheDevice(rocm_test.Case):
    def test_as_on_copies_and_every_kernel_was_prepared(self):
        """One sequence of many rows, and rows of a sequence each, through the workspace of torch's own memory."""
        mine, copies = _serving.Serving(ENGINE, True), _serving.Serving(wavejit.Engine(os.environ["WAVEJIT_DEVICE"]), False)
        mine.prepare([_sparse_indexer.line("e4m3", HEADS, TOP, 4096, rows) for rows in _sparse_indexer.ROWS_OF_KERNELS])
        mine.seal()
        self.addCleanup(ENGINE.unseal)
        before, (cache, _) = ENGINE.statistics(), cache_of(PAGES * PAGE)
        numbers, scales = _sparse_indexer.parts_of(cache, E4M3)
        lying = tensor_of(ENGINE.array(numbers.contiguous().view(torch.uint8).numpy(), "e4m3")), rocm(scales.contiguous().numpy())
        for step in (Step([], [(21, 60)]), Step([(1, 90), (1, 50), (1, 20)], [])):
            expected = step.run(operator(cache, torch.zeros(len(step.queries), TOP, dtype=torch.int32), copies))
            buffer = rocm(numpy.zeros((len(step.queries), TOP), numpy.int32))
            made = operator(None, buffer, mine)
            with mock.patch.object(_sparse_indexer, "parts_of", lambda *_: lying):
                made._call(tensor_of(ENGINE.array(step.queries.view(torch.uint8).numpy(), "e4m3")), rocm(step.weights.numpy()), rocm(step.table.numpy()), rocm(step.seen.numpy()), 0,
                           int(step.lengths.max()))  # fmt: skip
            self.assertTrue((host(buffer) == expected.numpy()).all())
        after = ENGINE.statistics()
        self.assertEqual((after["compiled"], after["refused_sealed"]), (before["compiled"], 0))


class Doors(unittest.TestCase):
    def test_what_vllms_own_indexer_does(self):
        made = operator(None, torch.zeros(1, TOP, dtype=torch.int32), None)
        usual = {"head_dim": DIM, "quant_block_size": DIM, "use_fp4_cache": False, "compress_ratio": 1, "candidate_blocks": None, "dcp_world_size": 1, "use_pcp": False}
        for field, value in usual.items():
            setattr(made, field, value)
        self.assertIsNone(made._reason())
        for field, value, told in (("head_dim", 64, "keys of 64 numbers"), ("use_fp4_cache", True, "4 bits"), ("compress_ratio", 4, "stand for several"), ("dcp_world_size", 2, "share keys"),
                                   ("topk_indices_buffer", None, "no topk_indices_buffer")):  # fmt: skip
            with mock.patch.object(made, field, value):
                self.assertRegex(made._reason(), told)
        with mock.patch.object(_sparse_indexer._limits, "target", lambda: "gfx942"):
            self.assertRegex(made._reason(), "gfx942 reads e4m3_fnuz")
        # As on ROCm
        with mock.patch.object(_sparse_indexer.current_platform, "is_cpu", lambda: False):
            made.k_cache.uses_shuffled_layout = False
            self.assertIsNone(made._reason())
            made.k_cache.uses_shuffled_layout = True
            self.assertRegex(made._reason(), "shuffled")
            made.skip_k_cache_insert = False
            self.assertRegex(made._reason(), "write")

    def test_another_plug_ins_operator_stays(self):
        for there, told in ((None, None), (WavejitSparseAttnIndexer, None), (type("Theirs", (), {}), "Theirs already, and stays it")):
            with self.subTest(there), mock.patch.dict(op_registry_oot, clear=True), mock.patch.object(_sparse_indexer.logger, "warning") as warned:
                if there is not None:
                    op_registry_oot[NAME] = there
                _sparse_indexer.register()
                self.assertIs(op_registry_oot[NAME], there or WavejitSparseAttnIndexer)
                self.assertEqual(warned.call_count, 0 if told is None else 1)

    def test_the_cache_says_that_its_reader_wants_keys_side_by_side(self):
        shuffled = type("Shuffled", (DeepseekV32Indexer.indexer_cache_cls,), {"uses_shuffled_layout": True})
        indexer = type("Indexer", (DeepseekV32Indexer,), {"indexer_cache_cls": shuffled})
        made = _sparse_indexer.plainly_cached(indexer)
        self.assertTrue(issubclass(made, indexer) and issubclass(made.indexer_cache_cls, shuffled))
        self.assertFalse(made.indexer_cache_cls.uses_shuffled_layout)
        self.assertTrue(indexer.indexer_cache_cls.uses_shuffled_layout)


if __name__ == "__main__":
    unittest.main()
