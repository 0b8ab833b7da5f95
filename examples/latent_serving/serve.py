# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Serves a small model with latent attention: prompts in chunks, then a token at a time, over one cache in pages.

    python3 examples/latent_serving/serve.py --device sim:gfx950

A key is one row of 576 numbers, 512 of a latent and 64 of a rope. Up-projections of keys and values are absorbed: into
the queries before the call, into O behind it (`Layer.queries`, `Layer.behind`). The cache holds nothing per head.

The requests are served three times: all at once, each alone, and their prompts in other chunks. Tokens and the bits of
logits must be the same. And each token is compared with a float64 model that projects keys and values up, head by
head, and knows no cache. Exit code 1: something differs.
"""
from __future__ import annotations

import argparse
import sys

import numpy

import wavejit

HEADS, LATENT, ROPE, NOPE, VALUE = 12, 512, 64, 128, 32
HIDDEN, LAYERS, VOCABULARY, PAGE = 96, 2, 61, 64
SCALE = (NOPE + ROPE) ** -0.5  # of the dims before absorption: the width of the call, 576, is nobody's


def to_bf16(values: numpy.ndarray) -> numpy.ndarray:
    """The nearest bf16, ties to even, as bits."""
    bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def rounded(values: numpy.ndarray) -> numpy.ndarray:
    return (to_bf16(values).astype(numpy.uint32) << 16).view(numpy.float32)


def turned(vector: numpy.ndarray, position: int) -> numpy.ndarray:
    """The rope: pairs of dims turn by the position."""
    angle = position / 10000 ** (numpy.arange(ROPE // 2) / (ROPE // 2))
    even, odd = vector[..., 0::2], vector[..., 1::2]
    return numpy.concatenate([even * numpy.cos(angle) - odd * numpy.sin(angle), even * numpy.sin(angle) + odd * numpy.cos(angle)], axis=-1)


def normed(vector: numpy.ndarray) -> numpy.ndarray:
    return vector / numpy.sqrt((vector * vector).mean() + 1e-6)


class Layer:
    """Weights, float64. A row is multiplied by itself, so that who stands beside it in a step changes nothing here either."""

    def __init__(self, random: numpy.random.Generator) -> None:
        def weights(*shape: int) -> numpy.ndarray:
            return random.standard_normal(shape) * shape[0] ** -0.5

        self.query = weights(HIDDEN, HEADS * (NOPE + ROPE)) * 3
        self.compress = weights(HIDDEN, LATENT + ROPE)
        self.up_k = random.standard_normal((HEADS, NOPE, LATENT)) * LATENT**-0.5
        self.up_v = random.standard_normal((HEADS, VALUE, LATENT)) * LATENT**-0.5
        self.out = weights(HEADS * VALUE, HIDDEN) * 3

    def split_query(self, hidden: numpy.ndarray, position: int) -> tuple[numpy.ndarray, numpy.ndarray]:
        both = (hidden @ self.query).reshape(HEADS, NOPE + ROPE)
        return both[:, :NOPE], turned(both[:, NOPE:], position)

    def queries(self, hidden: numpy.ndarray, position: int) -> numpy.ndarray:
        """Absorbed: [heads, 576]."""
        nope, rope = self.split_query(hidden, position)
        return numpy.concatenate([numpy.einsum("hn,hnc->hc", nope, self.up_k), rope], axis=1)

    def cached(self, hidden: numpy.ndarray, position: int) -> numpy.ndarray:
        """What the cache keeps of a token, in bf16: [576]."""
        both = hidden @ self.compress
        return rounded(numpy.concatenate([normed(both[:LATENT]), turned(both[LATENT:], position)]))

    def behind(self, attended: numpy.ndarray) -> numpy.ndarray:
        """O of the call [heads, 512] through the up-projection of values and the layer's last one."""
        return numpy.einsum("hc,hvc->hv", attended, self.up_v).reshape(-1) @ self.out


class Model:
    def __init__(self, seed: int) -> None:
        random = numpy.random.default_rng(seed)
        self.embedding = random.standard_normal((VOCABULARY, HIDDEN))
        self.unembedding = random.standard_normal((VOCABULARY, HIDDEN))
        self.layers = [Layer(random) for _ in range(LAYERS)]

    def logits(self, hidden: numpy.ndarray) -> numpy.ndarray:
        return self.unembedding @ normed(hidden)

    def exact(self, tokens: list[int]) -> numpy.ndarray:
        """Logits behind the last token, as the model is defined: no cache, no absorption, keys and values per head."""
        hidden = [self.embedding[token] for token in tokens]
        for layer in self.layers:
            cached = numpy.array([layer.cached(normed(row), place) for place, row in enumerate(hidden)], numpy.float64)
            keys = numpy.einsum("kc,hnc->hkn", cached[:, :LATENT], layer.up_k)
            values = numpy.einsum("kc,hvc->hkv", cached[:, :LATENT], layer.up_v)
            behind = []
            for place, row in enumerate(hidden):
                nope, rope = layer.split_query(normed(row), place)
                scores = SCALE * (numpy.einsum("hn,hkn->hk", nope, keys[:, : place + 1]) + rope @ cached[: place + 1, LATENT:].T)
                weights = numpy.exp(scores - scores.max(axis=1, keepdims=True))
                attended = numpy.einsum("hk,hkv->hv", weights / weights.sum(axis=1, keepdims=True), values[:, : place + 1])
                behind.append(row + attended.reshape(-1) @ layer.out)
            hidden = behind
        return self.logits(hidden[-1])


class Request:
    def __init__(self, prompt: list[int], answers: int) -> None:
        self.prompt, self.wanted = prompt, answers
        self.answer: list[int] = []
        self.logits: list[numpy.ndarray] = []
        self.done = 0  # tokens whose keys are in the cache
        self.pages: list[int] = []

    def tokens(self) -> list[int]:
        return self.prompt + self.answer

    def finished(self) -> bool:
        return len(self.answer) == self.wanted


class Server:
    """One cache a layer, [pages, 64, 1, 576] in device memory, and steps over it."""

    def __init__(self, engine: wavejit.Engine, model: Model, pages: int) -> None:
        self.engine, self.model = engine, model
        self.caches = [engine.empty((pages, PAGE, 1, LATENT + ROPE), "bf16") for _ in model.layers]
        self.free = list(range(pages))

    def serve(self, requests: list[Request], chunk: int) -> int:
        """A token of each request that decodes, up to `chunk` of each prompt. Returns the steps."""
        steps = 0
        while waiting := [request for request in requests if not request.finished()]:
            self.step([(request, min(len(request.tokens()) - request.done, chunk)) for request in waiting])
            steps += 1
        for request in requests:
            self.free += request.pages
        return steps

    def step(self, rows: list[tuple[Request, int]]) -> None:
        places = [(request, request.done + i) for request, count in rows for i in range(count)]
        for request, count in rows:
            while len(request.pages) * PAGE < request.done + count:
                request.pages.append(self.free.pop())
        hidden = [self.model.embedding[request.tokens()[place]] for request, place in places]
        starts = numpy.cumsum([0] + [count for _, count in rows]).astype(numpy.int32)
        lengths = [request.done + count for request, count in rows]
        table = numpy.zeros((len(rows), max(len(request.pages) for request, _ in rows)), numpy.int32)
        for row, (request, _) in enumerate(rows):
            table[row, : len(request.pages)] = request.pages
        for layer, cache in zip(self.model.layers, self.caches):
            for row, (request, place) in zip(hidden, places):
                cache[request.pages[place // PAGE], place % PAGE, 0].copy_from(to_bf16(layer.cached(normed(row), place)))
            queries = to_bf16(numpy.array([layer.queries(normed(row), place) for row, (_, place) in zip(hidden, places)]))
            out = self.engine.attention_latent(queries[None], cache, scale=SCALE, causal=True, dtype="bf16", block_table=table, query_starts=starts,
                                               max_query_length=int(max(numpy.diff(starts))), key_lengths=lengths, max_key_length=max(lengths))
            attended = out.numpy("float32")[0].astype(numpy.float64)
            hidden = [row + layer.behind(attended[i]) for i, row in enumerate(hidden)]
        for (request, count), end in zip(rows, starts[1:]):
            request.done += count
            if request.done == len(request.tokens()):
                request.logits.append(self.model.logits(hidden[end - 1]))
                request.answer.append(int(request.logits[-1].argmax()))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="auto", help="as of wavejit.Engine (default: auto)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    engine = wavejit.Engine(arguments.device)
    model = Model(arguments.seed)
    random = numpy.random.default_rng(arguments.seed + 1)
    prompts = [[int(token) for token in random.integers(0, VOCABULARY, length)] for length in (70, 3, 21)]

    def fresh() -> list[Request]:
        return [Request(prompt, 4) for prompt in prompts]

    together, alone, otherwise = fresh(), fresh(), fresh()
    server = Server(engine, model, 12)
    steps = server.serve(together, 32)
    for request in alone:
        server.serve([request], 1000)
    server.serve(otherwise[::-1], 9)

    good = True
    error, margin = 0.0, float("inf")
    for number, request in enumerate(together):
        right = 0
        for i, logits in enumerate(request.logits):
            exact = model.exact(request.prompt + request.answer[:i])
            error = max(error, float(numpy.abs(exact - logits).max()))
            first, second = numpy.sort(exact)[[-1, -2]]
            margin = min(margin, float(first - second))
            right += int(exact.argmax()) == request.answer[i]
        good &= right == request.wanted
        print(f"request {number}, prompt of {len(request.prompt)}: {' '.join(map(str, request.answer))}  {right} of {request.wanted} equal to the reference")
    print(f"largest error of a logit {error:.4f}, smallest margin {margin:.4f}; {steps} steps")
    for what, others in (("each alone, its prompt whole", alone), ("the other way round, prompts in chunks of 9", otherwise)):
        same = all(one.answer == other.answer and numpy.array_equal(one.logits, other.logits) for one, other in zip(together, others))
        good &= same
        print(f"{what}: {'the same bits of logits' if same else 'OTHER bits of logits'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
