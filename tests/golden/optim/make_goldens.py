#!/usr/bin/env python3
"""Writes the goldens of tests/golden/optim from torch.optim and transformers.get_scheduler.

Usage: make_goldens.py [FOLDER]   (needs torch, transformers, safetensors; default: its own folder)

adamw.safetensors, per case: CASE.norms [100] (global gradient norms before clipping) and
CASE.decayed, CASE.plain [100, 3, samples]: master, first and second moment after each step, every
STRIDE-th element of two parameters, of which only the first decays. CASE.options: learning rate,
beta1, beta2, epsilon, weight decay, max norm (0: no clipping), size of the gradients (all f64).
Initial weights and gradients come from a counter: value() below and in adamw_golden_test.cpp.

updates.safetensors, per case: CASE.states [recorded steps, 3, 64] (weight, first and second moment; the
second is zero for SGD) of single elements whose gradients are of very different sizes, and
CASE.options: learning rate, beta1 (SGD: momentum), beta2, epsilon, weight decay, first step (all
f64). CASE begins with the optimizer's name. From first step 1 the moments begin at zero and steps 1,
10, 100 and 1000 are recorded; from a later one they begin at values of a counter, and the first and
tenth are.

schedules.safetensors, per case: CASE.rates [total + 5] and CASE.options: warm-up steps, total steps,
decay steps, min ratio, cycles, power, end, timescale (all f64; the peak is 1). Cases of the first
schedules end after the cycles. CASE begins with the schedule's name.
"""
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import get_scheduler

STEPS, STRIDE = 100, 331
DECAYED, PLAIN = 5000, 3000

# learning rate, beta1, beta2, epsilon, weight decay, max norm, gradient size
ADAMW_CASES = {
    "default": (1e-3, 0.9, 0.999, 1e-8, 0.01, 0.0, 1.0),
    "finetune": (3e-4, 0.9, 0.95, 1e-6, 0.1, 0.0, 2.0**-10),
    "quick": (1e-2, 0.8, 0.99, 1e-8, 0.0, 0.0, 1.0),
    # 8000 uniform values of this size have norm 200.
    "clipped": (1e-3, 0.9, 0.999, 1e-8, 0.01, 1.0, 7.75),
}

# learning rate, beta1, beta2, epsilon, weight decay, first step
UPDATE_CASES = {
    "adamw.default": (1e-3, 0.9, 0.999, 1e-8, 0.01, 1),
    "adamw.finetune": (3e-4, 0.9, 0.95, 1e-6, 0.1, 1),
    "adamw.quick": (1e-2, 0.8, 0.99, 1e-8, 0.0, 1),
    "adamw.memoryless": (1e-3, 0.0, 0.9, 1e-4, 0.3, 1),
    "adamw.late": (1e-3, 0.9, 0.999, 1e-8, 0.01, 1000000),
    "adam.default": (1e-3, 0.9, 0.999, 1e-8, 0.0, 1),
    # A large epsilon: with a small one, weights that only decay swing around zero by whole steps, and
    # torch in fp32 and in fp64 part within a thousand steps.
    "adam.decayed": (1e-3, 0.9, 0.98, 1e-3, 0.05, 1),
    "adam.late": (1e-3, 0.9, 0.98, 1e-9, 0.05, 1000000),
    "sgd.momentum": (1e-3, 0.9, 0.0, 0.0, 0.0, 1),
    "sgd.decayed": (1e-2, 0.95, 0.0, 0.0, 0.01, 1),
}
ELEMENTS = 64
# Gradients of element i are of size SIZES[i % 8]: zero, denormal, tiny, ordinary, huge.
SIZES = np.array([1.0, 0.0, 1e-41, 1e-30, 1e-9, 2.0**-10, 1e4, 1e16], dtype=np.float32)

# name, warm-up steps, total steps, decay steps, min ratio, cycles
SCHEDULE_CASES = {
    "linear.warm": (10, 100, 0, 0.0, 0.5),
    "linear.cold": (0, 37, 0, 0.0, 0.5),
    "cosine.warm": (7, 90, 0, 0.0, 0.5),
    "cosine.waves": (5, 80, 0, 0.0, 1.5),
    "cosine.floor": (5, 80, 0, 0.1, 0.5),
    "constant.plain": (0, 20, 0, 0.0, 0.5),
    "constant_with_warmup.warm": (12, 40, 0, 0.0, 0.5),
    "warmup_stable_decay.zero": (10, 100, 25, 0.0, 0.5),
    "warmup_stable_decay.floor": (10, 100, 25, 0.1, 0.5),
    "cosine_with_min_lr.warm": (7, 90, 0, 0.2, 0.5),
    "cosine_with_min_lr.waves": (0, 60, 0, 0.05, 1.5),
    "polynomial.line": (10, 100, 0, 0.0, 0.5, 1.0, 1e-7, 0),
    "polynomial.square": (6, 70, 0, 0.0, 0.5, 2.0, 0.05, 0),
    "polynomial.root": (0, 50, 0, 0.0, 0.5, 0.5, 0.0, 0),
    "inverse_sqrt.warm": (10, 100, 0, 0.0, 0.5, 1.0, 1e-7, 0),
    "inverse_sqrt.cold": (0, 60, 0, 0.0, 0.5, 1.0, 1e-7, 0),
    "inverse_sqrt.scaled": (8, 90, 0, 0.0, 0.5, 1.0, 1e-7, 40),
}


def value(stream, counters):
    """Uniform in [-0.5, 0.5), exact in fp32: a pure function of the stream and the counter."""
    x = counters.astype(np.uint32) + np.uint32(stream * 0x9E3779B9 & 0xFFFFFFFF)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24) - np.float32(0.5)


def gradient(step, first, count, size):
    return torch.from_numpy(value(step + 1, np.arange(first, first + count)) * np.float32(size))


def adamw_case(options):
    rate, beta1, beta2, epsilon, decay, max_norm, size = options
    every = np.arange(DECAYED + PLAIN)
    decayed = torch.nn.Parameter(torch.from_numpy(value(0, every[:DECAYED])))
    plain = torch.nn.Parameter(torch.from_numpy(value(0, every[DECAYED:])))
    groups = [{"params": [decayed], "weight_decay": decay}, {"params": [plain], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(beta1, beta2), eps=epsilon)
    norms, states = [], {"decayed": [], "plain": []}
    for step in range(STEPS):
        decayed.grad = gradient(step, 0, DECAYED, size)
        plain.grad = gradient(step, DECAYED, PLAIN, size)
        limit = max_norm if max_norm > 0 else float("inf")
        norms.append(torch.nn.utils.clip_grad_norm_([decayed, plain], limit).item())
        optimizer.step()
        for name, parameter in (("decayed", decayed), ("plain", plain)):
            state = optimizer.state[parameter]
            rows = [parameter.detach(), state["exp_avg"], state["exp_avg_sq"]]
            states[name].append(torch.stack([row[::STRIDE].clone() for row in rows]))
    return {"norms": torch.tensor(norms, dtype=torch.float64),
            "options": torch.tensor(options, dtype=torch.float64),
            "decayed": torch.stack(states["decayed"]), "plain": torch.stack(states["plain"])}


def update_optimizer(kind, parameter, rate, beta1, beta2, epsilon, decay):
    if kind == "sgd":
        return torch.optim.SGD([parameter], lr=rate, momentum=beta1, weight_decay=decay)
    family = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[kind]
    return family([parameter], lr=rate, betas=(beta1, beta2), eps=epsilon, weight_decay=decay)


def start_late(optimizer, parameter, step):
    """Gives Adam the state some long run left it, before optimizer step `step`."""
    moment1, moment2 = value(2001, np.arange(ELEMENTS)), value(2002, np.arange(ELEMENTS))
    optimizer.state[parameter] = {"step": torch.tensor(float(step - 1)),
                                  "exp_avg": torch.from_numpy(moment1),
                                  "exp_avg_sq": torch.from_numpy(moment2 * moment2)}


def update_case(name, options):
    kind, first = name.split(".")[0], options[-1]
    every = np.arange(ELEMENTS)
    parameter = torch.nn.Parameter(torch.from_numpy(value(0, every)))
    optimizer = update_optimizer(kind, parameter, *options[:-1])
    if first > 1:
        start_late(optimizer, parameter, first)
    recorded, states = ([1, 10, 100, 1000] if first == 1 else [1, 10]), []
    for step in range(1, recorded[-1] + 1):
        parameter.grad = torch.from_numpy(value(step, every) * SIZES[every % 8])
        optimizer.step()
        if step in recorded:
            state = optimizer.state[parameter]
            moment1 = state["momentum_buffer" if kind == "sgd" else "exp_avg"]
            moment2 = state.get("exp_avg_sq", torch.zeros(ELEMENTS))
            states.append(torch.stack([parameter.detach().clone(), moment1.clone(),
                                       moment2.clone()]))
    return {"states": torch.stack(states), "options": torch.tensor(options, dtype=torch.float64)}


def schedule_case(name, options):
    warmup, total, decay, floor, cycles = options[:5]
    power, end, timescale = options[5:] or (1.0, 1e-7, 0)
    kind, extra = name.split(".")[0], {}
    if kind == "warmup_stable_decay":
        extra = {"num_decay_steps": decay, "min_lr_ratio": floor, "num_cycles": cycles}
    elif kind == "cosine":
        extra = {"num_cycles": cycles}
        if floor > 0:
            kind, extra = "cosine_with_min_lr", {"num_cycles": cycles, "min_lr_rate": floor}
    elif kind == "cosine_with_min_lr":
        extra = {"num_cycles": cycles, "min_lr": floor}
    elif kind == "polynomial":
        extra = {"power": power, "lr_end": end}
    elif kind == "inverse_sqrt" and timescale > 0:
        extra = {"timescale": timescale}
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = get_scheduler(kind, optimizer, num_warmup_steps=warmup, num_training_steps=total,
                              scheduler_specific_kwargs=extra)
    rates = []
    for _ in range(total + 5):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return {"rates": torch.tensor(rates, dtype=torch.float64),
            "options": torch.tensor(options, dtype=torch.float64)}


def save(cases, path):
    tensors = {f"{case}.{name}": tensor.contiguous() for case, fields in cases.items()
               for name, tensor in fields.items()}
    save_file(tensors, path)
    path.chmod(0o644)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    save({name: adamw_case(options) for name, options in ADAMW_CASES.items()},
         folder / "adamw.safetensors")
    save({name: update_case(name, options) for name, options in UPDATE_CASES.items()},
         folder / "updates.safetensors")
    save({name: schedule_case(name, options) for name, options in SCHEDULE_CASES.items()},
         folder / "schedules.safetensors")


if __name__ == "__main__":
    main()
