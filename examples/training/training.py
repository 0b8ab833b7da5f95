#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The training of main.cpp in plain Python: NumPy beside wavejit's attention. README.md says what it shows.

    python training.py [--device sim:gfx950] [--steps 4]

A product is of one sequence at a time, and gradients of weights are added sequence after sequence: whatever NumPy does inside a
product, it does it to the same rows, and no batch shows.
"""
import argparse
import sys

import numpy

import wavejit

VOCABULARY, HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FEED_FORWARD, LENGTH = 32, 48, 2, 2, 1, 64, 64, 20
ROOM = {"query": (HEADS * HEAD_DIM, HIDDEN), "key": (KV_HEADS * HEAD_DIM, HIDDEN), "value": (KV_HEADS * HEAD_DIM, HIDDEN), "output": (HIDDEN, HEADS * HEAD_DIM),
        "up": (FEED_FORWARD, HIDDEN), "down": (HIDDEN, FEED_FORWARD)}  # fmt: skip
SHAPES = {"tokens": (VOCABULARY, HIDDEN), "positions": (LENGTH, HIDDEN), "unembedding": (VOCABULARY, HIDDEN),
          **{f"{name}{layer}": shape for layer in range(LAYERS) for name, shape in ROOM.items()}}  # fmt: skip
GRADIENT_BOUND = 0.02  # of each matrix: the difference's length over its own


class DeviceAttention:
    """wavejit's, in fp16; gradients come back in fp32."""

    real = numpy.float32

    def __init__(self, engine):
        self.engine = engine

    def forward(self, q, k, v):
        halves = [each.astype(numpy.float16) for each in (q, k, v)]
        out, lse = (each.numpy() for each in self.engine.attention_forward(*halves, causal=True, lse=True))
        return out.astype(numpy.float32), (*halves, out, lse)

    def backward(self, d_out, kept):
        found = self.engine.attention_backward(*kept, d_out.astype(numpy.float16), causal=True, gradients="fp32")
        return [each.numpy() for each in found]


class PlainAttention:
    """Float64, by the definition."""

    real = numpy.float64

    @staticmethod
    def weights(q, k):
        scores = numpy.einsum("bqhd,bkhd->bhqk", q, numpy.repeat(k, HEADS // KV_HEADS, 2)) / HEAD_DIM**0.5
        scores = numpy.where(numpy.tri(LENGTH, dtype=bool), scores, -numpy.inf)
        weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True)

    def forward(self, q, k, v):
        return numpy.einsum("bhqk,bkhd->bqhd", self.weights(q, k), numpy.repeat(v, HEADS // KV_HEADS, 2)), (q, k, v)

    def backward(self, d_out, kept):
        q, k, v = kept
        weights = self.weights(q, k)
        d_weights = numpy.einsum("bqhd,bkhd->bhqk", d_out, numpy.repeat(v, HEADS // KV_HEADS, 2))
        d_scores = weights * (d_weights - (weights * d_weights).sum(-1, keepdims=True)) / HEAD_DIM**0.5

        def of_group(per_head):
            return per_head.reshape(*k.shape[:3], HEADS // KV_HEADS, HEAD_DIM).sum(3)

        return (numpy.einsum("bhqk,bkhd->bqhd", d_scores, numpy.repeat(k, HEADS // KV_HEADS, 2)),
                of_group(numpy.einsum("bhqk,bqhd->bkhd", d_scores, q)), of_group(numpy.einsum("bhqk,bqhd->bkhd", weights, d_out)))  # fmt: skip


def initial_parameters(real):
    numbers = numpy.random.default_rng(2026)
    return {name: numbers.integers(-64, 65, shape).astype(real) / 256 for name, shape in SHAPES.items()}


def batch_of(step, sequences):
    """Each token follows from the one before: [sequences, LENGTH + 1]."""
    tokens = [numpy.random.default_rng(step).integers(0, VOCABULARY, sequences)]
    while len(tokens) <= LENGTH:
        tokens.append((5 * tokens[-1] + 7) % VOCABULARY)
    return numpy.stack(tokens, 1)


def multiply(x, weight):
    return numpy.stack([rows @ weight.T for rows in x])


def multiply_back(gradient, weight):
    return numpy.stack([rows @ weight for rows in gradient])


def add_outer(gradient, d_result, x):
    for rows, of_input in zip(d_result, x):
        gradient += rows.T @ of_input


def normalised(x):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def normalised_back(gradient, x):
    factor = 1 / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    return factor * (gradient - x * (gradient * x).mean(-1, keepdims=True) * factor**2)


def loss_and_gradients(weights, attention, batch, gradients):
    """The sum of all tokens' losses; gradients get their terms behind those that are there, sequence after sequence."""
    x, kept = weights["tokens"][batch[:, :-1]] + weights["positions"], []
    for layer in range(LAYERS):
        before, seen = x, normalised(x)
        q, k, v = (multiply(seen, weights[f"{name}{layer}"]).reshape(len(batch), LENGTH, -1, HEAD_DIM) for name in ("query", "key", "value"))
        attended, of_attention = attention.forward(q, k, v)
        attended = attended.reshape(len(batch), LENGTH, -1)
        middle = before + multiply(attended, weights[f"output{layer}"])
        up = multiply(normalised(middle), weights[f"up{layer}"])
        x = middle + multiply(up / (1 + numpy.exp(-up)), weights[f"down{layer}"])
        kept.append((before, of_attention, attended, middle, up))
    last, losses = normalised(x), 0
    logits = multiply(last, weights["unembedding"])
    shifted = logits - logits.max(-1, keepdims=True)
    of_token = numpy.take_along_axis(shifted, batch[:, 1:, None], -1)
    sums = numpy.exp(shifted).sum(-1, keepdims=True)
    for loss in (numpy.log(sums) - of_token)[..., 0]:
        losses = losses + loss.sum()
    gradient = numpy.exp(shifted) / sums
    numpy.put_along_axis(gradient, batch[:, 1:, None], numpy.take_along_axis(gradient, batch[:, 1:, None], -1) - 1, -1)

    add_outer(gradients["unembedding"], gradient, last)
    gradient = normalised_back(multiply_back(gradient, weights["unembedding"]), x)
    for layer, (before, of_attention, attended, middle, up) in reversed(list(enumerate(kept))):
        sigmoid = 1 / (1 + numpy.exp(-up))
        add_outer(gradients[f"down{layer}"], gradient, up * sigmoid)
        d_up = multiply_back(gradient, weights[f"down{layer}"]) * sigmoid * (1 + up * (1 - sigmoid))
        add_outer(gradients[f"up{layer}"], d_up, normalised(middle))
        gradient = gradient + normalised_back(multiply_back(d_up, weights[f"up{layer}"]), middle)
        add_outer(gradients[f"output{layer}"], gradient, attended)
        d_out = multiply_back(gradient, weights[f"output{layer}"]).reshape(len(batch), LENGTH, HEADS, HEAD_DIM)
        d_seen = 0
        for name, found in zip(("query", "key", "value"), attention.backward(d_out, of_attention)):
            found = found.reshape(len(batch), LENGTH, -1)
            add_outer(gradients[f"{name}{layer}"], found, normalised(before))
            d_seen = d_seen + multiply_back(found, weights[f"{name}{layer}"])
        gradient = gradient + normalised_back(d_seen, before)
    for tokens, rows in zip(batch, gradient):
        numpy.add.at(gradients["tokens"], tokens[:-1], rows)
        gradients["positions"] += rows
    return losses


def train(attention, splits, steps, in_reverse=False):
    """With Adam, from the same weights each time. Losses and weights."""
    weights = initial_parameters(numpy.float32)
    zeros = {name: numpy.zeros(shape, numpy.float32) for name, shape in SHAPES.items()}
    means, squares, losses = zeros, zeros, []
    for step in range(1, steps + 1):
        gradients = {name: numpy.zeros(shape, numpy.float32) for name, shape in SHAPES.items()}
        batch = batch_of(step, sum(splits))
        pieces = numpy.split(batch[::-1] if in_reverse else batch, numpy.cumsum(splits)[:-1])
        losses.append(sum(loss_and_gradients(weights, attention, piece, gradients) for piece in pieces) / batch[:, 1:].size)
        means = {name: numpy.float32(0.9) * means[name] + numpy.float32(0.1) * slope for name, slope in gradients.items()}
        squares = {name: numpy.float32(0.99) * squares[name] + numpy.float32(0.01) * slope**2 for name, slope in gradients.items()}
        for name in weights:
            root = numpy.sqrt(squares[name] / numpy.float32(1 - 0.99**step)) + numpy.float32(1e-8)
            weights[name] -= numpy.float32(3e-3) * (means[name] / numpy.float32(1 - 0.9**step)) / root
    return losses, weights


def main():
    parser = argparse.ArgumentParser(description="A small decoder, trained on wavejit's attention.")
    parser.add_argument("--device", help="a simulated GPU, as sim:gfx950: NumPy's arrays are copied there. Without it: WAVEJIT_DEVICE")
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    engine = wavejit.Engine(options.device)
    held, batch = [], batch_of(0, 2)

    found, exact = ({name: numpy.zeros(shape, real) for name, shape in SHAPES.items()} for real in (numpy.float32, numpy.float64))
    loss_and_gradients(initial_parameters(numpy.float32), DeviceAttention(engine), batch, found)
    loss_and_gradients(initial_parameters(numpy.float64), PlainAttention(), batch, exact)
    largest = max(numpy.linalg.norm(found[name] - exact[name]) / numpy.linalg.norm(exact[name]) for name in exact)
    print(f"gradients: {len(exact)} matrices beside float64, largest error {largest:.4f} of a matrix's length")
    held.append(largest < GRADIENT_BOUND)

    whole_losses, whole = train(DeviceAttention(engine), [6], options.steps)
    for step, loss in enumerate(whole_losses, 1):
        print(f"step {step}: loss {loss:.4f}")
    held.append(whole_losses[-1] < whole_losses[0])
    count = sum(weight.size for weight in whole.values())
    for splits, in_reverse in (([3, 3], False), ([1, 2, 3], False), ([6], True)):
        _, weights = train(DeviceAttention(engine), splits, options.steps, in_reverse)
        differ = sum(int((weights[name].view(numpy.uint32) != whole[name].view(numpy.uint32)).sum()) for name in whole)
        how = "the same sequences in reverse" if in_reverse else f"batches of {' + '.join(map(str, splits))} in place of 6"
        print(f"{how}: {differ} of {count} weights differ{', for that is another sum' if in_reverse else ''}")
        held.append((differ > 0) is in_reverse)
    if not all(held):
        sys.exit("training.py: a promise did NOT hold")


if __name__ == "__main__":
    main()
