#!/usr/bin/env python3
"""Median training step of a Llama-class model in plain PyTorch, on a GPU: what Strata's step is set against.

Reads the shape from a Hugging Face config.json; weights and tokens are random. bf16 weights, fp32 master weights and
moments by torch's fused AdamW, attention by scaled_dot_product_attention, one document a row. --checkpointing computes
each layer's forward again in backward, as Strata does unless it is told to keep layers. Needs torch 2.1 or newer and
nothing else; --device cpu is for trying it out.

  python3 torch_gpu_step.py --config model/config.json --batch 1 --seq 2048 --steps 10 --json step.json"""
import argparse
import json
import math
import os
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


HAS_SDPA = hasattr(F, "scaled_dot_product_attention")
HAS_GROUPED_SDPA = HAS_SDPA and tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 5)


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
        h, f, bias = c["hidden_size"], c["intermediate_size"], c["attention_bias"]
        self.heads, self.groups, self.dim = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        self.norm1, self.norm2 = RMSNorm(h, c["rms_norm_eps"]), RMSNorm(h, c["rms_norm_eps"])
        self.q = nn.Linear(h, self.heads * self.dim, bias=bias)
        self.k = nn.Linear(h, self.groups * self.dim, bias=bias)
        self.v = nn.Linear(h, self.groups * self.dim, bias=bias)
        self.o = nn.Linear(self.heads * self.dim, h, bias=False)
        self.gate, self.up = nn.Linear(h, f, bias=False), nn.Linear(h, f, bias=False)
        self.down = nn.Linear(f, h, bias=False)

    def attention(self, x, cos, sin, mask):
        b, t, _ = x.shape
        split = lambda y, n: y.view(b, t, n, self.dim).transpose(1, 2)
        q, k = rotate(split(self.q(x), self.heads), cos, sin), rotate(split(self.k(x), self.groups), cos, sin)
        v = split(self.v(x), self.groups)
        if HAS_GROUPED_SDPA:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            k, v = (pair.repeat_interleave(self.heads // self.groups, dim=1) for pair in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True) if HAS_SDPA else self.plain(q, k, v, mask)
        return self.o(y.transpose(1, 2).reshape(b, t, -1))

    def plain(self, q, k, v, mask):
        return torch.softmax((q @ k.transpose(-1, -2)).float() / math.sqrt(self.dim) + mask, -1).to(v.dtype) @ v

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.norm1(x), cos, sin, mask)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, c, checkpointing=False):
        super().__init__()
        self.c, self.checkpointing = c, checkpointing
        self.embed = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        if c["tie_word_embeddings"]:
            self.head.weight = self.embed.weight

    def positions(self, t, device):
        d, dtype = self.c["head_dim"], self.norm.weight.dtype
        turns = self.c["rope_theta"] ** (-torch.arange(0, d, 2, device=device).float() / d)
        angle = torch.arange(t, device=device).float()[:, None] * turns
        angle = torch.cat((angle, angle), -1)
        return angle.cos().to(dtype), angle.sin().to(dtype)

    def forward(self, tokens, labels):
        t = tokens.shape[1]
        cos, sin = self.positions(t, tokens.device)
        mask = None if HAS_SDPA else torch.full((t, t), float("-inf"), device=tokens.device).triu(1)
        x = self.embed(tokens)
        for layer in self.layers:
            if self.checkpointing:
                x = checkpoint(layer, x, cos, sin, mask, use_reentrant=False)
            else:
                x = layer(x, cos, sin, mask)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), labels.view(-1))


def read_shape(path):
    """The fields of a config.json, or of the one in a folder, with Hugging Face's defaults for what is not there."""
    with open(os.path.join(path, "config.json") if os.path.isdir(path) else path) as file:
        c = json.load(file)
    c.setdefault("num_key_value_heads", c["num_attention_heads"])
    c.setdefault("head_dim", c["hidden_size"] // c["num_attention_heads"])
    c.setdefault("tie_word_embeddings", False)
    c.setdefault("rope_theta", 10000.0)
    c.setdefault("rms_norm_eps", 1e-6)
    c.setdefault("attention_bias", False)
    return c


class MasterAdamW:
    """AdamW on fp32 masters of bf16 weights; on fp32 weights it works on them."""

    def __init__(self, model, device, max_grad_norm):
        self.weights, self.max_grad_norm = list(model.parameters()), max_grad_norm
        self.has_masters = self.weights[0].dtype != torch.float32
        self.masters = self.weights
        if self.has_masters:
            self.masters = [w.detach().float().clone().requires_grad_() for w in self.weights]
        self.fused = device.type == "cuda"
        options = {"fused": True} if self.fused else {}
        self.optimizer = torch.optim.AdamW(self.masters, lr=1e-4, weight_decay=0.01, **options)

    def step(self):
        if self.has_masters:
            for master, weight in zip(self.masters, self.weights):
                master.grad, weight.grad = weight.grad.float(), None
        if self.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(self.masters, self.max_grad_norm)
        self.optimizer.step()
        if self.has_masters:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, self.masters)
        self.optimizer.zero_grad(set_to_none=True)


def make_model(c, options, device):
    """In its own dtype from the start: a model that fits only in bf16 is never there in fp32."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if options.dtype == "bf16" else torch.float32)
    try:
        with torch.device(device):
            return Llama(c, options.checkpointing)
    finally:
        torch.set_default_dtype(default)


def time_steps(model, options, c, device):
    """Seconds of each step and its loss, those of the warm-up among them."""
    optimizer = MasterAdamW(model, device, options.max_grad_norm)
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    seconds, losses = [], []
    for _ in range(options.steps + options.warm_up):
        tokens = torch.randint(0, c["vocab_size"], (options.batch, options.seq), device=device)
        labels = torch.roll(tokens, -1, 1)
        wait()
        begin = time.perf_counter()
        loss = model(tokens, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        wait()
        seconds.append(time.perf_counter() - begin)
    return seconds, losses, optimizer.fused


def measure(options):
    torch.manual_seed(0)
    device = torch.device(options.device)
    c = read_shape(options.config)
    if options.threads:
        torch.set_num_threads(options.threads)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.cuda.reset_peak_memory_stats(device)
    model = make_model(c, options, device)
    num_parameters = sum(w.numel() for w in model.parameters())
    if options.compile:
        model = torch.compile(model)
    seconds, losses, fused = time_steps(model, options, c, device)
    step, tokens = statistics.median(seconds[options.warm_up:]), options.batch * options.seq
    on_gpu = device.type == "cuda"
    return {"format": "strata-torch-step", "torch": torch.__version__, "cuda": torch.version.cuda if on_gpu else None,
            "device": torch.cuda.get_device_name(device) if on_gpu else "cpu", "dtype": options.dtype,
            "checkpointing": options.checkpointing, "fused_adamw": fused, "max_grad_norm": options.max_grad_norm,
            "compiled": options.compile, "parameters": num_parameters, "batch": options.batch, "seq": options.seq,
            "step_seconds": step, "all_step_seconds": seconds, "tokens_per_second": tokens / step,
            "peak_memory_bytes": torch.cuda.max_memory_allocated(device) if on_gpu else None,
            "peak_reserved_bytes": torch.cuda.max_memory_reserved(device) if on_gpu else None,
            "first_loss": losses[0], "loss": losses[-1]}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", required=True, help="config.json of a Llama, or the folder that holds it")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=10, help="steps that are timed")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before them")
    parser.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--checkpointing", action="store_true", help="compute forward again in backward")
    parser.add_argument("--compile", action="store_true", help="by torch.compile; give it a few more --warm-up steps")
    parser.add_argument("--max-grad-norm", type=float, default=1.0, help="0: no clipping")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: torch's choice")
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args()


def main():
    options = parse_options()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("torch sees no GPU: --device cpu tries the script out")
    try:
        figures = measure(options)
    except torch.cuda.OutOfMemoryError as error:
        sys.exit(f"does not fit: {error}")
    text = json.dumps(figures)
    print(text)
    if options.json:
        with open(options.json, "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
