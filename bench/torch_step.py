#!/usr/bin/env python3
"""Median training step of a Llama-class model in plain PyTorch, everything in RAM: the reference for bench/compare_steps.

Reads the shape from a Hugging Face folder's config.json; weights are random. bf16 keeps fp32 master weights, as Strata does.
Works with Debian's python3-torch (1.13) and later; no other package."""
import argparse
import json
import math
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * y.to(x.dtype)


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        h, f = c["hidden_size"], c["intermediate_size"]
        self.heads, self.groups, self.dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        self.norm1, self.norm2 = RMSNorm(h, c["rms_norm_eps"]), RMSNorm(h, c["rms_norm_eps"])
        self.q = nn.Linear(h, self.heads * self.dim, bias=False)
        self.k = nn.Linear(h, self.groups * self.dim, bias=False)
        self.v = nn.Linear(h, self.groups * self.dim, bias=False)
        self.o = nn.Linear(self.heads * self.dim, h, bias=False)
        self.gate, self.up, self.down = nn.Linear(h, f, bias=False), nn.Linear(h, f, bias=False), nn.Linear(f, h, bias=False)

    def attention(self, x, cos, sin, mask):
        b, t, _ = x.shape
        split = lambda y, n: y.view(b, t, n, self.dim).transpose(1, 2)
        q = rotate(split(self.q(x), self.heads), cos, sin)
        k = rotate(split(self.k(x), self.groups), cos, sin).repeat_interleave(self.heads // self.groups, dim=1)
        v = split(self.v(x), self.groups).repeat_interleave(self.heads // self.groups, dim=1)
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = torch.softmax((q @ k.transpose(-1, -2)).float() / math.sqrt(self.dim) + mask, -1).to(x.dtype) @ v
        return self.o(y.transpose(1, 2).reshape(b, t, -1))

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.norm1(x), cos, sin, mask)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        if c["tie_word_embeddings"]:
            self.head.weight = self.embed.weight

    def forward(self, tokens, labels):
        t, d = tokens.shape[1], self.c["head_dim"]
        angle = torch.arange(t).float()[:, None] * self.c["rope_theta"] ** (-torch.arange(0, d, 2).float() / d)
        angle = torch.cat((angle, angle), -1)
        dtype = self.norm.weight.dtype
        cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
        mask = torch.full((t, t), float("-inf")).triu(1)
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), labels.view(-1))


def read_shape(folder):
    with open(folder + "/config.json") as file:
        c = json.load(file)
    c.setdefault("num_key_value_heads", c["num_attention_heads"])
    c.setdefault("head_dim", c["hidden_size"] // c["num_attention_heads"])
    c.setdefault("tie_word_embeddings", False)
    return c


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
