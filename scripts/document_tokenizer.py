"""Turns documents into tokens with a trained mask: by a Hugging Face tokenizer.json, or by bytes."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import xxhash

from documents import ChatTemplate, SourceError
from token_shard import TokenDocument

BATCH = 512
BYTE_END = 256


def span_mask(begins, spans):
    """True for the tokens whose first character lies in a span."""
    mask = np.zeros(len(begins), bool)
    for begin, end in spans:
        mask |= (begins >= begin) & (begins < end)
    return mask


def batches(items, size):
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


class ByteTokenizer:
    """The engine's built-in tokenizer: bytes are ids 0..255, 256 ends a document."""

    name, hash, vocab_size = "byte", 0, 257
    bos, eos, chat = None, BYTE_END, None

    def _tokenize(self, document):
        tokens = np.frombuffer(document.text.encode("utf-8") + b"\0", np.uint8).astype(np.uint32)
        tokens[-1] = BYTE_END
        if document.trained is None:
            return TokenDocument(tokens)
        widths = [len(character.encode("utf-8")) for character in document.text]
        begins = np.repeat(np.arange(len(widths)), widths)
        return TokenDocument(tokens, np.append(span_mask(begins, document.trained), True))

    def tokenize(self, documents):
        return map(self._tokenize, documents)


class HuggingFaceTokenizer:
    def __init__(self, path, chat_template, eos_token, append_eos):
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        config = self._config(path.parent)
        self.name = config.get("name") or path.resolve().parent.name
        self.hash = xxhash.xxh3_64(path.read_bytes()).intdigest()
        self.vocab_size = max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        self.bos = self._id(self._text(config.get("bos_token")))
        self.eos = self._id(eos_token or self._text(config.get("eos_token")))
        if (append_eos or eos_token) and self.eos is None:
            raise SourceError(
                "the end-of-text token is not known or not in the vocabulary; give --eos-token"
            )
        self._append_eos = append_eos
        self.chat = self._chat(path.parent, config, chat_template)

    @staticmethod
    def _config(folder):
        path = folder / "tokenizer_config.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    @staticmethod
    def _text(token):
        return token.get("content") if isinstance(token, dict) else token

    def _id(self, token):
        return None if token is None else self._tokenizer.token_to_id(token)

    def _chat(self, folder, config, given):
        path = given or folder / "chat_template.jinja"
        template = (
            path.read_text(encoding="utf-8") if path.is_file() else config.get("chat_template")
        )
        if not isinstance(template, str):
            return None
        tokens = {
            key: self._text(config[key])
            for key in ("bos_token", "eos_token", "unk_token", "pad_token")
            if config.get(key) is not None
        }
        return ChatTemplate(template, tokens)

    def _mask(self, encoding, spans):
        begins = np.array([begin for begin, _ in encoding.offsets], dtype=np.int64)
        mask = span_mask(begins, spans)
        added = np.array([end == 0 for _, end in encoding.offsets], dtype=bool)
        mask[added] = False  # Put in by the tokenizer, not part of the text ...
        if len(mask) and added[-1]:
            mask[-1] = True  # ... but how a document ends is to be learnt.
        return mask

    def _document(self, document, encoding):
        tokens = np.array(encoding.ids, dtype=np.uint32)
        mask = None if document.trained is None else self._mask(encoding, document.trained)
        if self._append_eos and (len(tokens) == 0 or tokens[-1] != self.eos):
            tokens = np.append(tokens, np.uint32(self.eos))
            mask = None if mask is None else np.append(mask, True)
        return TokenDocument(tokens, mask)

    def tokenize(self, documents):
        for batch in batches(documents, BATCH):
            for is_chat in (False, True):
                texts = [document.text for document in batch if document.is_chat == is_chat]
                encodings = iter(
                    self._tokenizer.encode_batch(texts, add_special_tokens=not is_chat)
                )
                for document in batch:
                    if document.is_chat == is_chat:
                        document.encoding = next(encodings)
            yield from (self._document(document, document.encoding) for document in batch)


def open_tokenizer(name, chat_template, eos_token, append_eos):
    if name == "byte":
        return ByteTokenizer()
    path = Path(name)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        raise SourceError(
            f"tokenizer {path} does not exist (a tokenizer.json, a folder with one, or 'byte')"
        )
    return HuggingFaceTokenizer(path, chat_template, eos_token, append_eos)
