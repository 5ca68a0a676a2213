#!/usr/bin/env python3
"""Writes the goldens of tests/golden/model from transformers' Llama, Qwen2, Qwen3 and Mistral.

Usage: make_goldens.py [FOLDER]   (needs torch, transformers, safetensors; default: its own folder)

In fp32 with eager attention. Per case a Hugging Face folder (config.json, model.safetensors; the
weights are fp32 numbers that bf16 holds exactly) and goldens.safetensors: tokens, labels (-1: not
trained), document_start, logits, token_losses (unscaled), loss (mean over the trained tokens) and
gradient.NAME of every parameter. Everything is stored as fp32, integers too. A case of several
documents is computed as so many separate rows; the packed row is what the tests run.

rope.safetensors holds the inverse frequencies of well-known configs.
"""
import pathlib
import shutil
import sys

import torch
from safetensors.torch import save_file
from transformers import (LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM,
                          Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

# Small enough that 48 tokens meet the kept, the blended and the stretched frequencies.
LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
# Of its eight pairs some turn as they did, some between, some a fourth as fast.
YARN_ROPE = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "beta_fast": 4.0,
             "beta_slow": 1.0, "original_max_position_embeddings": 64}
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 10000.0}

CASES = {
    "tied": dict(seed=1, documents=[48], tie_word_embeddings=True, hidden_size=32,
                 intermediate_size=56, num_hidden_layers=2, rope_parameters=PLAIN_ROPE),
    "untied_packed": dict(seed=2, documents=[20, 17, 11], tie_word_embeddings=False, hidden_size=32,
                          intermediate_size=40, num_hidden_layers=3, rope_parameters=PLAIN_ROPE),
    "bias_llama3": dict(seed=3, documents=[48], tie_word_embeddings=False, hidden_size=40,
                        intermediate_size=44, num_hidden_layers=2, rope_parameters=LLAMA3_ROPE,
                        attention_bias=True, mlp_bias=True),
    "qwen2": dict(seed=4, documents=[30, 18], tie_word_embeddings=False, hidden_size=32,
                  intermediate_size=40, num_hidden_layers=2, rope_parameters=PLAIN_ROPE,
                  use_sliding_window=False),
    "qwen3": dict(seed=6, documents=[30, 18], tie_word_embeddings=True, hidden_size=32,
                  intermediate_size=40, num_hidden_layers=2, rope_parameters=PLAIN_ROPE),
    "llama_yarn": dict(seed=7, documents=[48], tie_word_embeddings=True, hidden_size=32,
                       intermediate_size=40, num_hidden_layers=2, rope_parameters=YARN_ROPE),
    # The longest row in which every token sees all before it.
    "mistral_window": dict(seed=5, documents=[48], tie_word_embeddings=True, hidden_size=32,
                           intermediate_size=40, num_hidden_layers=2, rope_parameters=PLAIN_ROPE,
                           sliding_window=48),
}
CLASSES = {"qwen2": (Qwen2Config, Qwen2ForCausalLM), "qwen3": (Qwen3Config, Qwen3ForCausalLM),
           "mistral_window": (MistralConfig, MistralForCausalLM)}  # others: Llama

ROPE_CASES = {
    "smollm2": (64, {"rope_type": "default", "rope_theta": 100000.0}),
    "llama2": (128, {"rope_type": "default", "rope_theta": 10000.0}),
    "llama3.1": (128, {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
                       "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192}),
    "llama3.2": (64, {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0,
                      "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 8192}),
    "linear": (128, {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
    "qwen3.yarn": (128, {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0,
                         "original_max_position_embeddings": 32768}),
    "yarn.untruncated": (64, {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0,
                              "truncate": False, "original_max_position_embeddings": 4096}),
}


def save(tensors, path):
    save_file(tensors, path)
    path.chmod(0o644)


def make_model(name, options):
    config, model = CLASSES.get(name, (LlamaConfig, LlamaForCausalLM))
    return model(config(vocab_size=97, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                        max_position_embeddings=256, rms_norm_eps=1e-5, initializer_range=0.15,
                        bos_token_id=1, eos_token_id=2, attn_implementation="eager", **options))


def randomize(model, generator):
    """Weights of a size at which every part matters, each a number that bf16 holds exactly."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            mean = 1.0 if name.endswith("norm.weight") else 0.0
            values = mean + 0.15 * torch.randn(parameter.shape, generator=generator)
            parameter.copy_(values.bfloat16().float())


def make_rows(documents, vocab, generator):
    """Per document tokens and the next ones as labels; its end and a fifth are not trained."""
    rows = []
    for length in documents:
        tokens = torch.randint(0, vocab, (length,), generator=generator)
        labels = torch.cat([tokens[1:], torch.tensor([-1])])
        labels[torch.rand(length, generator=generator) < 0.2] = -1
        rows.append((tokens, labels))
    return rows


def token_losses(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels, ignore_index=-1, reduction="none")


def run_rows(model, rows):
    logits = [model(tokens[None]).logits[0].float() for tokens, _ in rows]
    losses = torch.cat([token_losses(part, labels) for part, (_, labels) in zip(logits, rows)])
    trained = sum(int((labels >= 0).sum()) for _, labels in rows)
    loss = losses.sum() / trained
    loss.backward()
    return torch.cat(logits).detach(), losses.detach(), loss.detach()


def document_starts(documents):
    starts, begin = [], 0
    for length in documents:
        starts += [begin] * length
        begin += length
    return torch.tensor(starts)


def report_bf16(model, rows, goldens):
    """How far transformers itself lands in bf16, for the bound that the tests state."""
    model = model.bfloat16()
    model.zero_grad()
    _, _, loss = run_rows(model, rows)
    worst = max(float((parameter.grad.float() - goldens["gradient." + name]).abs().max()
                      / goldens["gradient." + name].abs().max())
                for name, parameter in model.named_parameters())
    print(f"  transformers in bf16: loss off by {abs(float(loss - goldens['loss'])):.2e},"
          f" worst gradient by {worst:.2e} of its largest element")


def write_case(folder, name, options):
    options = dict(options)
    generator = torch.Generator().manual_seed(options.pop("seed"))
    documents = options.pop("documents")
    model = make_model(name, options)
    randomize(model, generator)
    rows = make_rows(documents, model.config.vocab_size, generator)
    logits, losses, loss = run_rows(model, rows)
    goldens = {"tokens": torch.cat([tokens for tokens, _ in rows]),
               "labels": torch.cat([labels for _, labels in rows]),
               "document_start": document_starts(documents), "logits": logits,
               "token_losses": losses, "loss": loss.reshape(1)}
    goldens |= {"gradient." + key: value.grad for key, value in model.named_parameters()}
    goldens = {key: value.detach().float().contiguous().clone() for key, value in goldens.items()}
    shutil.rmtree(folder / name, ignore_errors=True)
    model.save_pretrained(folder / name)
    (folder / name / "generation_config.json").unlink(missing_ok=True)
    save(goldens, folder / name / "goldens.safetensors")
    (folder / name / "model.safetensors").chmod(0o644)
    print(f"{name}: loss {float(loss):.6f}")
    report_bf16(model, rows, goldens)


def write_rope(folder):
    frequencies = {}
    for name, (head_dim, rope) in ROPE_CASES.items():
        config = LlamaConfig(hidden_size=4 * head_dim, num_attention_heads=4, head_dim=head_dim,
                             max_position_embeddings=131072, rope_parameters=rope)
        frequencies[name] = LlamaRotaryEmbedding(config).inv_freq.float().clone()
    save(frequencies, folder / "rope.safetensors")


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.use_deterministic_algorithms(True)
    for name, options in CASES.items():
        write_case(folder, name, options)
    write_rope(folder)


if __name__ == "__main__":
    main()
