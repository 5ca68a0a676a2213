#!/usr/bin/env python3
"""Makes token shards from text, JSON or Parquet files.

Writes DIR/train.tok and, with --split-fraction, DIR/heldout.tok. Documents of a text file are separated
by blank lines, or one file is one document. Records lie one a line (JSONL) or in one JSON array, or are the rows
of a Parquet file; text and JSON may be packed by gzip. A record holds
  text                               all of it trained
  prompt, completion                 the prompt is not trained
  messages                           rendered by the chat template; only what the assistant says is trained
  instruction, input, output         Alpaca: the same, of the messages they make; also history and system
  conversations                      ShareGPT: the same; also system
What a file holds is found from its first record, or said with --format. Tokens that nanoGPT, llm.c or Megatron-LM
wrote are taken over with --format nanogpt or megatron.
Run it with the interpreter that scripts/python-env prints.
"""

import argparse
import signal
import sys
from itertools import islice
from pathlib import Path

try:
    import xxhash

    from corpus_report import CorpusReport, percent
    from document_tokenizer import open_tokenizer, with_end
    from documents import RECORD_BYTES_MAX, ReadOptions, read_documents
    from input_files import BadRecords, Reading, SourceError
    from progress import ProgressLine, scaled
    from record_formats import Renderer
    from shard_set import ShardSet, is_current
    from token_files import megatron_pair, read_token_files
except ImportError as error:
    sys.exit(f"prepare: {error}; run it with the interpreter that scripts/python-env prints")

LAYOUT = 1  # Raise when the same options give other bytes.
TOKEN_FORMATS = ("nanogpt", "megatron")
FORMATS = ("text", "jsonl", "completion", "messages", "alpaca", "sharegpt", *TOKEN_FORMATS)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tokenizer", required=True, help="a tokenizer.json, a folder that holds one, or 'byte'"
    )
    parser.add_argument("--input", required=True, nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--output", required=True, type=Path, metavar="DIR")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="what the files hold; jsonl: records of any kind, each by its own fields (default: as the first record)",
    )
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
        "--chat-template", type=Path, metavar="FILE", help="Jinja template for conversations"
    )
    parser.add_argument(
        "--prompt-template",
        choices=["alpaca"],
        help="write Alpaca records into the prompt that Alpaca was trained with, not the chat template",
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
    parser.add_argument(
        "--skip-bad-records",
        action="store_true",
        help="leave out and count records that break a rule",
    )
    parser.add_argument(
        "--max-record-bytes",
        type=int,
        default=RECORD_BYTES_MAX,
        metavar="BYTES",
        help=f"largest record or document that is read; memory grows with it (default: {RECORD_BYTES_MAX})",
    )
    parser.add_argument(
        "--token-bytes",
        type=int,
        choices=[2, 4],
        help="bytes of a token in a nanoGPT file (default: 2, or 4 where the vocabulary needs it)",
    )
    return parser.parse_args()


def check_arguments(arguments):
    if not 0 <= arguments.split_fraction < 1:
        raise SourceError(f"--split-fraction must lie in [0, 1), not {arguments.split_fraction}")
    if not 0 <= arguments.seed < 2**64:
        raise SourceError("--seed must fit 64 bits and not be negative")
    for name in ("cutoff_len", "max_record_bytes", "max_documents"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise SourceError(f"--{name.replace('_', '-')} must be at least 1, not {value}")
    if arguments.token_bytes and arguments.format != "nanogpt":
        raise SourceError("--token-bytes is for --format nanogpt")
    if arguments.skip_bad_records and arguments.format in TOKEN_FORMATS:
        raise SourceError(f"--skip-bad-records is not for --format {arguments.format}")
    for path in arguments.input:
        if not path.is_file():
            raise SourceError(f"input {path} does not exist")
    if arguments.chat_template and not arguments.chat_template.is_file():
        raise SourceError(f"chat template {arguments.chat_template} does not exist")


def take_pairs_once(arguments):
    """Of Megatron's pairs either file may be given, or both."""
    if arguments.format == "megatron":
        arguments.input = list(dict.fromkeys(megatron_pair(path)[0] for path in arguments.input))


def all_files(arguments):
    if arguments.format != "megatron":
        return arguments.input
    return [part for path in arguments.input for part in megatron_pair(path)]


def hash_files(paths, progress):
    state = xxhash.xxh3_64()
    reading = Reading(paths)
    for path in paths:
        with open(path, "rb") as file:
            reading.follow(file.tell)
            while chunk := file.read(1 << 20):
                state.update(chunk)
                progress.draw(lambda _: f"hashing the input, {reading.share():.0%}")
        reading.finish(path)
    return state.intdigest()


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
            "prompt_template",
            "skip_bad_records",
            "max_record_bytes",
            "token_bytes",
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


def say(line):
    print(f"prepare: {line}", flush=True)


def tokenized_documents(arguments, tokenizer, reading, bad_records, notice):
    """All documents as tokens, read and tokenized as they are asked for."""
    if arguments.format in TOKEN_FORMATS:
        documents = read_token_files(arguments.input, arguments, tokenizer, reading)
        if arguments.append_eos:
            documents = (with_end(document, tokenizer.eos) for document in documents)
        return islice(documents, arguments.max_documents)
    options = ReadOptions(arguments.format, arguments.separator, arguments.max_record_bytes, notice)
    render = Renderer(tokenizer.chat, arguments.prompt_template)
    documents = read_documents(arguments.input, options, render, reading, bad_records)
    return tokenizer.tokenize(islice(documents, arguments.max_documents))


def progress_text(report, reading, seconds):
    rate = scaled(report.num_tokens / seconds)
    return (
        f"{reading.share():.0%} of the input, {scaled(report.num_documents)} documents, "
        f"{scaled(report.num_tokens)} tokens, {rate} tokens/s"
    )


def write_shards(arguments, tokenizer, shards, progress):
    """Fills the shards, and returns the report and the records that were left out."""
    reading = Reading(arguments.input)
    bad_records = BadRecords(arguments.skip_bad_records)
    report = CorpusReport(tokenizer, arguments.cutoff_len)

    def notice(line):
        progress.clear()
        say(line)

    for document in tokenized_documents(arguments, tokenizer, reading, bad_records, notice):
        if report.count(document):
            shards.add(document)
        progress.draw(lambda seconds: progress_text(report, reading, seconds))
    if not report.num_documents:
        bad = "".join(f"; a bad record: {line}" for line in bad_records.shown)
        raise SourceError(f"the input holds no document{bad}")
    return report, bad_records


def tell(report, bad_records, writers):
    for writer in writers.values():
        say(
            f"{writer.path}: {writer.num_documents} documents, {writer.num_tokens} tokens, "
            f"{writer.trained_targets} trained ({percent(writer.trained_targets, writer.num_tokens)})"
        )
    for line in report.summary():
        say(line)
    if bad_records.count:
        say(f"warning: {bad_records.count} bad records left out, the first:")
        for line in bad_records.shown:
            say(f"  {line}")
    for line in report.warnings():
        say(f"warning: {line}")


def prepare(arguments, progress):
    check_arguments(arguments)
    take_pairs_once(arguments)
    tokenizer = open_tokenizer(
        arguments.tokenizer, arguments.chat_template, arguments.eos_token, arguments.append_eos
    )
    source_hash = hash_files(all_files(arguments), progress)
    wanted = fingerprint(arguments, tokenizer, source_hash)
    splits = ["train", "heldout"] if arguments.split_fraction else ["train"]
    if is_current(arguments.output, splits, wanted):
        progress.clear()
        say(f"{arguments.output} is up to date")
        return
    with ShardSet(
        arguments.output, tokenizer, source_hash, arguments.split_fraction, arguments.seed
    ) as shards:
        report, bad_records = write_shards(arguments, tokenizer, shards, progress)
        shards.finish(wanted)
        progress.clear()
        tell(report, bad_records, shards.writers)


def main():
    arguments = parse_arguments()
    progress = ProgressLine()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("prepare: stopped"))
    try:
        prepare(arguments, progress)
    except KeyboardInterrupt:
        progress.clear()
        sys.exit("prepare: stopped")
    except (SourceError, ValueError, OSError) as error:
        progress.clear()
        sys.exit(f"prepare: {error}")


if __name__ == "__main__":
    main()
