#!/usr/bin/env python3
"""Median training step of a Llama-class model in plain PyTorch, everything in RAM: the reference for bench/compare_steps.

Reads the shape from a Hugging Face folder's config.json; weights are random. bf16 keeps fp32 master weights, as Strata does.
Works with Debian's python3-torch (1.13) and later; no other package."""
import argparse
import json
import statistics
import time

import torch

from torch_gpu_step import Llama, read_shape


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--max-grad-norm", type=float, default=0.0)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    c = read_shape(a.folder)
    model = Llama(c).to(torch.bfloat16 if a.dtype == "bf16" else torch.float32)
    weights = list(model.parameters())
    masters = [w.detach().float().clone().requires_grad_() for w in weights] if a.dtype == "bf16" else weights
    optimizer = torch.optim.AdamW(masters, lr=1e-4, weight_decay=0.01)
    tokens = torch.randint(0, c["vocab_size"], (a.batch, a.length))
    labels = torch.roll(tokens, -1, 1)
    times, computes = [], []
    for _ in range(a.steps + 2):
        begin = time.perf_counter()
        loss = model(tokens, labels)
        loss.backward()
        middle = time.perf_counter()
        if masters is not weights:
            for master, weight in zip(masters, weights):
                master.grad, weight.grad = weight.grad.float(), None
        if a.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(masters, a.max_grad_norm)
        optimizer.step()
        if masters is not weights:
            with torch.no_grad():
                for master, weight in zip(masters, weights):
                    weight.copy_(master)
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - begin)
        computes.append(middle - begin)
    step, compute = statistics.median(times[2:]), statistics.median(computes[2:])
    print(json.dumps({"torch": torch.__version__, "parameters": sum(w.numel() for w in weights), "loss": loss.item(),
                      "step_seconds": step, "forward_backward_seconds": compute,
                      "tokens_per_second": a.batch * a.length / step}))


if __name__ == "__main__":
    main()
