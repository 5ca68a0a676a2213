#!/usr/bin/env python3
"""Writes the goldens of tests/golden/train: training runs of transformers' models in torch.

Usage: make_goldens.py [FOLDER]   (needs torch, transformers, safetensors; default: its own folder)

In fp32 with eager attention, from the weights of ../model/NAME: eight documents of unequal length
make one optimizer step, which is an epoch, so the order in which they are seen does not matter.
torch's AdamW at a constant rate, decay on matrices alone, gradients clipped by their global norm.
NAME.safetensors: tokens and trained (1: trained as a target) of all documents in a row, lengths of
the documents, losses and norms of the steps, loss_after (of the same documents), and weight.NAME of
every parameter after the last step. Everything is stored as fp32, integers too.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

CASES = {"tied": 11, "qwen2": 12, "qwen3": 13}  # seeds
STEPS = 10
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 0.1
MAX_GRAD_NORM = 1.0
LENGTHS = [24, 9, 17, 24, 5, 21, 13, 24]


def make_documents(vocab, generator):
    """Tokens, and which are trained as targets: all but a fifth; a first token is no target."""
    documents = []
    for length in LENGTHS:
        tokens = torch.randint(0, vocab, (length,), generator=generator)
        trained = torch.rand(length, generator=generator) >= 0.2
        trained[1] = True
        documents.append((tokens, trained))
    return documents


def mean_loss(model, documents):
    """Over the trained tokens of all documents, each a row of its own."""
    losses, count = [], 0
    for tokens, trained in documents:
        labels = torch.where(trained, tokens, -1)[1:]
        logits = model(tokens[None]).logits[0, :-1]
        losses.append(torch.nn.functional.cross_entropy(logits, labels, ignore_index=-1,
                                                        reduction="sum"))
        count += int((labels >= 0).sum())
    return torch.stack(losses).sum() / count


def make_optimizer(model):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY},
                              {"params": others, "weight_decay": 0.0}], lr=LEARNING_RATE)


def train(model, documents):
    optimizer = make_optimizer(model)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = mean_loss(model, documents)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM))
        losses.append(loss.detach())
        optimizer.step()
    return torch.stack(losses), torch.stack(norms)


def write_case(folder, name, seed):
    generator = torch.Generator().manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(folder.parent / "model" / name,
                                                 attn_implementation="eager", dtype=torch.float32)
    documents = make_documents(model.config.vocab_size, generator)
    losses, norms = train(model, documents)
    with torch.no_grad():
        after = mean_loss(model, documents)
    goldens = {"tokens": torch.cat([tokens for tokens, _ in documents]),
               "trained": torch.cat([trained for _, trained in documents]),
               "lengths": torch.tensor(LENGTHS), "losses": losses, "norms": norms,
               "loss_after": after.reshape(1)}
    goldens |= {"weight." + key: value for key, value in model.named_parameters()}
    goldens = {key: value.detach().float().contiguous().clone() for key, value in goldens.items()}
    path = folder / f"{name}.safetensors"
    save_file(goldens, path)
    path.chmod(0o644)
    print(f"{name}: loss {float(losses[0]):.6f} to {float(after):.6f}, norms "
          + " ".join(f"{float(norm):.3f}" for norm in norms))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.use_deterministic_algorithms(True)
    for name, seed in CASES.items():
        write_case(folder.resolve(), name, seed)


if __name__ == "__main__":
    main()
