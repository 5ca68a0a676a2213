#!/usr/bin/env python3
"""Makes token shards from text or JSONL files.

Writes DIR/train.tok and, with --split-fraction, DIR/heldout.tok. Documents of a text file are separated
by blank lines, or one file is one document. A JSONL line holds 'text', or 'prompt' and 'completion' (the
prompt is not trained), or 'messages' (rendered by the chat template; only what the assistant says is
trained).
Run it with the interpreter that scripts/python-env prints.
"""

import argparse
import json
import struct
import sys
from itertools import islice
from pathlib import Path

try:
    import numpy as np
    import xxhash

    from document_tokenizer import open_tokenizer
    from documents import SourceError, read_documents
    from token_shard import ShardInfo, write_token_shard
except ImportError as error:
    sys.exit(f"prepare: {error}; run it with the interpreter that scripts/python-env prints")

STATE_FILE = "prepare.json"
LAYOUT = 1  # Raise when the same options give other bytes.


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tokenizer", required=True, help="a tokenizer.json, a folder that holds one, or 'byte'"
    )
    parser.add_argument("--input", required=True, nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--output", required=True, type=Path, metavar="DIR")
    parser.add_argument("--format", choices=["text", "jsonl"], default="text")
    parser.add_argument(
        "--separator",
        choices=["blank-line", "file"],
        default="blank-line",
        help="what ends a document of a text file (default: blank-line)",
    )
    parser.add_argument(
        "--split-fraction",
        type=float,
        default=0.0,
        metavar="F",
        help="share of the documents held out, in [0, 1) (default: 0)",
    )
    parser.add_argument(
        "--seed", type=int, default=42, help="chooses the held-out documents (default: 42)"
    )
    parser.add_argument(
        "--append-eos", action="store_true", help="end every document with the end-of-text token"
    )
    parser.add_argument(
        "--eos-token", help="the end-of-text token (default: the one of tokenizer_config.json)"
    )
    parser.add_argument(
        "--chat-template", type=Path, metavar="FILE", help="Jinja template for 'messages'"
    )
    parser.add_argument(
        "--max-documents", type=int, metavar="N", help="read only the first N documents"
    )
    parser.add_argument(
        "--cutoff-len",
        type=int,
        default=2048,
        metavar="TOKENS",
        help="row length that the report counts over-long documents against (default: 2048)",
    )
    return parser.parse_args()


def check_arguments(arguments):
    if not 0 <= arguments.split_fraction < 1:
        raise SourceError(f"--split-fraction must lie in [0, 1), not {arguments.split_fraction}")
    if not 0 <= arguments.seed < 2**64:
        raise SourceError("--seed must fit 64 bits and not be negative")
    for path in arguments.input:
        if not path.is_file():
            raise SourceError(f"input {path} does not exist")
    if arguments.chat_template and not arguments.chat_template.is_file():
        raise SourceError(f"chat template {arguments.chat_template} does not exist")


def hash_files(paths):
    state = xxhash.xxh3_64()
    for path in paths:
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                state.update(chunk)
    return state.intdigest()


def split_documents(documents, fraction, seed):
    """(train, heldout): the documents whose hashed index is smallest are held out, so the choice needs no state."""
    if fraction == 0:
        return documents, []
    if len(documents) < 2:
        raise SourceError("--split-fraction needs at least two documents")
    count = min(max(int(len(documents) * fraction + 0.5), 1), len(documents) - 1)
    keys = [
        xxhash.xxh3_64_intdigest(struct.pack("<QQ", seed, index)) for index in range(len(documents))
    ]
    held = set(sorted(range(len(documents)), key=lambda index: (keys[index], index))[:count])
    return (
        [document for index, document in enumerate(documents) if index not in held],
        [documents[index] for index in sorted(held)],
    )


def trained_targets(document):
    """A document's first token is nobody's target."""
    return (
        len(document.tokens) - 1
        if document.trained is None
        else int(np.count_nonzero(document.trained[1:]))
    )


def warnings(documents, tokenizer, cutoff_len):
    untrained = sum(trained_targets(document) == 0 for document in documents)
    if untrained:
        yield f"{untrained} documents have no trained token"
    lengths = np.array([len(document.tokens) for document in documents])
    cut = int(np.maximum(lengths - cutoff_len, 0).sum())
    if cut:
        yield (
            f"{int((lengths > cutoff_len).sum())} documents are longer than {cutoff_len} tokens: a packed or separate "
            f"layout would cut off {cut} tokens ({100 * cut / lengths.sum():.1f}%), windows none"
        )
    if tokenizer.bos is not None:
        double = sum(
            len(document.tokens) > 1 and (document.tokens[:2] == tokenizer.bos).all()
            for document in documents
        )
        if double:
            yield f"{double} documents begin with two begin-of-text tokens"
    unended = sum(document.tokens[-1] != tokenizer.eos for document in documents)
    if tokenizer.eos is None:
        yield "the end-of-text token is not known, so documents without one are not counted (--eos-token)"
    elif unended:
        yield f"{unended} documents do not end with the end-of-text token (--append-eos adds it)"


def report(documents, splits, tokenizer, arguments, empty):
    for name, part in splits.items():
        tokens = sum(len(document.tokens) for document in part)
        targets = sum(trained_targets(document) for document in part)
        print(
            f"prepare: {arguments.output / name}.tok: {len(part)} documents, {tokens} tokens, {targets} trained"
        )
    if empty:
        print(f"prepare: warning: {empty} empty documents left out")
    for line in warnings(documents, tokenizer, arguments.cutoff_len):
        print(f"prepare: warning: {line}")


def fingerprint(arguments, tokenizer, source_hash):
    options = {
        key: getattr(arguments, key)
        for key in (
            "format",
            "separator",
            "split_fraction",
            "seed",
            "append_eos",
            "eos_token",
            "max_documents",
        )
    }
    template = (
        arguments.chat_template.read_text(encoding="utf-8") if arguments.chat_template else None
    )
    return {
        "layout": LAYOUT,
        "source_hash": f"{source_hash:016x}",
        "tokenizer": tokenizer.name,
        "tokenizer_hash": f"{tokenizer.hash:016x}",
        "chat_template": template,
        **options,
    }


def is_current(arguments, wanted):
    state = arguments.output / STATE_FILE
    names = ["train", "heldout"] if arguments.split_fraction else ["train"]
    if not state.is_file() or not all(
        (arguments.output / f"{name}.tok").is_file() for name in names
    ):
        return False
    try:
        return json.loads(state.read_text(encoding="utf-8")) == wanted
    except json.JSONDecodeError:
        return False


def write_splits(arguments, tokenizer, source_hash, splits):
    (arguments.output / "heldout.tok").unlink(
        missing_ok=True
    )  # One of another split would mislead.
    for name, part in splits.items():
        info = ShardInfo(tokenizer.vocab_size, tokenizer.name, name, tokenizer.hash, source_hash)
        write_token_shard(arguments.output / f"{name}.tok", info, part)


def prepare(arguments):
    check_arguments(arguments)
    tokenizer = open_tokenizer(
        arguments.tokenizer, arguments.chat_template, arguments.eos_token, arguments.append_eos
    )
    source_hash = hash_files(arguments.input)
    wanted = fingerprint(arguments, tokenizer, source_hash)
    if is_current(arguments, wanted):
        print(f"prepare: {arguments.output} is up to date")
        return
    sources = read_documents(arguments.input, arguments.format, arguments.separator, tokenizer.chat)
    tokenized = list(tokenizer.tokenize(islice(sources, arguments.max_documents)))
    documents = [document for document in tokenized if len(document.tokens)]
    if not documents:
        raise SourceError("the input holds no document")
    train, heldout = split_documents(documents, arguments.split_fraction, arguments.seed)
    splits = {"train": train, "heldout": heldout} if heldout else {"train": train}
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / STATE_FILE).unlink(missing_ok=True)
    write_splits(arguments, tokenizer, source_hash, splits)
    (arguments.output / STATE_FILE).write_text(
        json.dumps(wanted, indent=2) + "\n", encoding="utf-8"
    )
    report(documents, splits, tokenizer, arguments, len(tokenized) - len(documents))


def main():
    try:
        prepare(parse_arguments())
    except (SourceError, ValueError, OSError) as error:
        sys.exit(f"prepare: {error}")


if __name__ == "__main__":
    main()
