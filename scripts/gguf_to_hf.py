#!/usr/bin/env python3
"""Turns a Llama-class GGUF file with a byte-level BPE tokenizer into a Hugging Face folder.

Weights are dequantised and stored in bf16 under their Hugging Face names. GGUF stores the rows of q and
k interleaved for its own rotary embedding; they are put back in half-split order. Whatever this script
does not know is refused by name.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors import TensorSpec, serialize_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

WHOLE_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
CONTROL_TOKEN = 3  # gguf.TokenType.CONTROL


class Metadata:
    """The key-value part of a GGUF file; a missing key is an error unless a default is given."""

    def __init__(self, reader):
        self.fields = reader.fields

    def get(self, key, *default):
        field = self.fields.get(key)
        if field is not None:
            return field.contents()
        if default:
            return default[0]
        sys.exit(f"gguf_to_hf: the file has no metadata key '{key}'")


def hugging_face_name(name):
    if name in WHOLE_TENSORS:
        return WHOLE_TENSORS[name]
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if not match or match[2] not in LAYER_TENSORS:
        sys.exit(f"gguf_to_hf: tensor '{name}' has no place in LlamaForCausalLM")
    return f"model.layers.{match[1]}.{LAYER_TENSORS[match[2]]}.{match[3]}"


def half_split_rows(rows, num_heads):
    """Undoes GGUF's interleaving: rows (x0 y0 x1 y1 ...) of each head become (x0 x1 ... y0 y1 ...)."""
    pairs = rows.reshape(num_heads, rows.shape[0] // num_heads // 2, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def to_bf16_bits(values):
    """Rounds finite fp32 to the nearest even bf16."""
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def read_tensors(reader, config):
    tensors = {}
    for tensor in reader.tensors:
        name = hugging_face_name(tensor.name)
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        values = values.reshape([int(size) for size in reversed(tensor.shape)])
        if not np.isfinite(values).all():
            sys.exit(f"gguf_to_hf: tensor '{tensor.name}' holds values that are not finite")
        if ".q_proj." in name:
            values = half_split_rows(values, config["num_attention_heads"])
        if ".k_proj." in name:
            values = half_split_rows(values, config["num_key_value_heads"])
        tensors[name] = to_bf16_bits(values)
    return tensors


def write_tensors(path, tensors):
    specs = {
        name: TensorSpec(
            dtype="bfloat16", shape=bits.shape, data_ptr=bits.ctypes.data, data_len=bits.nbytes
        )
        for name, bits in tensors.items()
    }
    serialize_file(specs, str(path), {"format": "pt"})
    path.chmod(0o644)  # The library makes it readable by its owner alone.


def make_config(metadata, tied):
    architecture = metadata.get("general.architecture")
    if architecture != "llama":
        sys.exit(f"gguf_to_hf: architecture '{architecture}' is not supported, only 'llama'")
    if metadata.get("llama.rope.scaling.type", "none") != "none":
        sys.exit("gguf_to_hf: rope scaling is not supported")
    hidden, heads = metadata.get("llama.embedding_length"), metadata.get(
        "llama.attention.head_count"
    )
    head_dim = metadata.get("llama.attention.key_length", hidden // heads)
    theta = float(metadata.get("llama.rope.freq_base", 10000.0))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id", None),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": metadata.get("llama.feed_forward_length"),
        "max_position_embeddings": metadata.get("llama.context_length"),
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": metadata.get("llama.block_count"),
        "num_key_value_heads": metadata.get("llama.attention.head_count_kv", heads),
        # fp32 in the file; the shortest text with that value is what its author wrote.
        "rms_norm_eps": float(
            str(np.float32(metadata.get("llama.attention.layer_norm_rms_epsilon")))
        ),
        "rope_scaling": None,
        "rope_theta": theta,
        "tie_word_embeddings": tied,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": metadata.get("llama.vocab_size", len(metadata.get("tokenizer.ggml.tokens"))),
    }


def make_pre_tokenizer(name):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True)
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    if name in ("gpt-2", "default"):
        return byte_level
    sys.exit(f"gguf_to_hf: pre-tokenizer '{name}' is not supported, only smollm and gpt-2")


def make_tokenizer(metadata):
    kind = metadata.get("tokenizer.ggml.model")
    if kind != "gpt2":
        sys.exit(
            f"gguf_to_hf: tokenizer model '{kind}' is not supported, only byte-level BPE ('gpt2')"
        )
    tokens, kinds = metadata.get("tokenizer.ggml.tokens"), metadata.get("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in metadata.get("tokenizer.ggml.merges")]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, fuse_unk=False, byte_fallback=False)
    )
    tokenizer.pre_tokenizer = make_pre_tokenizer(metadata.get("tokenizer.ggml.pre", "default"))
    tokenizer.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, kinds) if kind == CONTROL_TOKEN]
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in control]
    )
    return tokenizer, control


def special_tokens(metadata):
    tokens = metadata.get("tokenizer.ggml.tokens")
    keys = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    ids = {role: metadata.get(f"tokenizer.ggml.{key}_token_id", None) for role, key in keys.items()}
    return {role: tokens[number] for role, number in ids.items() if number is not None}


def make_tokenizer_config(metadata, specials, control):
    config = {
        "add_bos_token": bool(metadata.get("tokenizer.ggml.add_bos_token", False)),
        "add_prefix_space": False,
        "additional_special_tokens": [token for token in control if token not in specials.values()],
        "clean_up_tokenization_spaces": False,
        "model_max_length": metadata.get("llama.context_length"),
        "tokenizer_class": "PreTrainedTokenizerFast",
        **specials,
    }
    template = metadata.get("tokenizer.chat_template", None)
    if template is not None:
        config["chat_template"] = template
    return config


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def convert(source, output, tokenizer_name):
    reader = GGUFReader(source)
    metadata = Metadata(reader)
    config = make_config(
        metadata, tied=all(tensor.name != "output.weight" for tensor in reader.tensors)
    )
    tokenizer, control = make_tokenizer(metadata)
    specials = special_tokens(metadata)
    tensors = read_tensors(reader, config)

    output.mkdir(parents=True)
    write_json(output / "config.json", config)
    write_json(
        output / "tokenizer_config.json",
        {"name": tokenizer_name, **make_tokenizer_config(metadata, specials, control)},
    )
    write_json(output / "special_tokens_map.json", specials)
    ids = {
        key: config[key]
        for key in ("bos_token_id", "eos_token_id", "pad_token_id")
        if config[key] is not None
    }
    write_json(output / "generation_config.json", {"_from_model_config": True, **ids})
    tokenizer.save(str(output / "tokenizer.json"))
    write_tensors(output / "model.safetensors", tensors)
    return sum(bits.size for bits in tensors.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("source", type=Path, help="the GGUF file")
    parser.add_argument("output", type=Path, help="the folder to make; must not exist")
    parser.add_argument(
        "--tokenizer-name",
        default="",
        help="name kept in tokenizer_config.json (default: the file's stem)",
    )
    arguments = parser.parse_args()
    if not arguments.source.is_file():
        sys.exit(f"gguf_to_hf: {arguments.source} is no file")
    if arguments.output.exists():
        sys.exit(f"gguf_to_hf: {arguments.output} exists; name a folder to make")
    count = convert(
        arguments.source, arguments.output, arguments.tokenizer_name or arguments.source.stem
    )
    print(f"model: {count} parameters, dequantised from {arguments.source.name}")


if __name__ == "__main__":
    main()
