"""Writes token shards: the binary layout of include/strata/data/token_shard.hpp, byte for byte as the engine does."""

import os
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash

MAGIC = b"STRATOK1"
VERSION = 1
HEADER_BYTES = 4096
ALIGNMENT = 64
U16_VOCABULARY = 65536
HEADER = struct.Struct("<8sIIQQQQQQQQ64s32sQ")


@dataclass
class TokenDocument:
    tokens: np.ndarray  # u32
    trained: np.ndarray | None = None  # bool; None: all


@dataclass
class ShardInfo:
    vocab_size: int
    tokenizer: str
    split: str
    tokenizer_hash: int = 0
    source_hash: int = 0


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def fixed_text(text, size, what):
    data = text.encode("utf-8")
    if len(data) > size:
        raise ValueError(f"{what} '{text}' is longer than {size} bytes")
    return data


def token_bytes(documents, vocab_size):
    tokens = np.concatenate([document.tokens for document in documents])
    if tokens.max() >= vocab_size:
        raise ValueError(f"token {tokens.max()} is outside the vocabulary of {vocab_size}")
    return tokens.astype("<u2" if vocab_size <= U16_VOCABULARY else "<u4").tobytes()


def document_bytes(documents):
    lengths = [len(document.tokens) for document in documents]
    return np.concatenate([[0], np.cumsum(lengths[:-1])]).astype("<u8").tobytes()


def mask_bytes(documents):
    """Empty when every token is trained."""
    if all(document.trained is None or document.trained.all() for document in documents):
        return b""
    masks = [
        np.ones(len(document.tokens), bool) if document.trained is None else document.trained
        for document in documents
    ]
    return np.packbits(np.concatenate(masks), bitorder="little").tobytes()


def header_bytes(info, documents, offsets, payload_hash):
    fields = HEADER.pack(
        MAGIC,
        VERSION,
        2 if info.vocab_size <= U16_VOCABULARY else 4,
        sum(len(document.tokens) for document in documents),
        len(documents),
        info.vocab_size,
        *offsets,
        payload_hash,
        info.tokenizer_hash,
        fixed_text(info.tokenizer, 64, "tokenizer name"),
        fixed_text(info.split, 32, "split"),
        info.source_hash,
    )
    return fields + bytes(HEADER_BYTES - len(fields))


def replace_file(path, parts):
    """Appears whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    with open(partial, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def write_token_shard(path, info, documents):
    """Documents hold at least one token each, and there is at least one document."""
    if not documents or any(len(document.tokens) == 0 for document in documents):
        raise ValueError("a token shard needs at least one document, and a token in each")
    mask = mask_bytes(documents)
    tokens, starts = padded(token_bytes(documents, info.vocab_size)), document_bytes(documents)
    if mask:
        starts = padded(starts)
    offsets = (
        HEADER_BYTES,
        HEADER_BYTES + len(tokens),
        HEADER_BYTES + len(tokens) + len(starts) if mask else 0,
    )
    payload_hash = xxhash.xxh3_64(tokens + starts + mask).intdigest()
    replace_file(
        Path(path), [header_bytes(info, documents, offsets, payload_hash), tokens, starts, mask]
    )
