#!/usr/bin/env python3
"""Makes the golden token shards that the C++ reader and writer are held to.

    $(scripts/python-env) tests/golden/data/make.py

documents.jsonl, byte.tok:            what scripts/prepare.py makes with the built-in byte tokenizer
documents.jsonl, tokenizer.json, bpe.tok: the same with a small byte-level BPE tokenizer (trained here when
                                      it is missing)
chat.jsonl, chat_template.jinja, chat.tok: conversations, only what the assistant says trained
wide.tok:                             a 32-bit shard straight from the writer of scripts/token_shard.py
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from token_shard import ShardInfo, TokenDocument, write_token_shard  # noqa: E402


def train_tokenizer(path):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=290,
        special_tokens=["<|endoftext|>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(
        ["the Word was with God in the beginning, how much is done"] * 4, trainer
    )
    tokenizer.save(str(path))


def make_shard(name, source, *tokenizer_options):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                sys.executable,
                SCRIPTS / "prepare.py",
                "--input",
                HERE / source,
                "--format",
                "jsonl",
                "--output",
                folder,
                *tokenizer_options,
            ],
            check=True,
        )
        shutil.move(Path(folder) / "train.tok", HERE / name)


def main():
    tokenizer = HERE / "tokenizer.json"
    if not tokenizer.exists():
        train_tokenizer(tokenizer)
    make_shard("byte.tok", "documents.jsonl", "--tokenizer", "byte")
    make_shard(
        "bpe.tok",
        "documents.jsonl",
        "--tokenizer",
        tokenizer,
        "--append-eos",
        "--eos-token",
        "<|endoftext|>",
    )
    make_shard("chat.tok", "chat.jsonl", "--tokenizer", tokenizer)
    documents = [
        TokenDocument(np.array([7, 99999, 65536], np.uint32)),
        TokenDocument(np.array([70000, 1], np.uint32), np.array([False, True])),
    ]
    write_token_shard(
        HERE / "wide.tok", ShardInfo(100000, "wide", "heldout", 0x1122334455667788, 0x99), documents
    )


if __name__ == "__main__":
    main()
