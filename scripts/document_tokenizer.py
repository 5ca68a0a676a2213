"""Turns documents into tokens with a trained mask: by a Hugging Face tokenizer.json, or by bytes."""

import json
from itertools import chain
from pathlib import Path

import numpy as np
import xxhash

from chat_template import ChatTemplate
from input_files import SourceError
from token_shard import TokenDocument

BATCH = 512
BATCH_CHARACTERS = 1 << 20
BYTE_END = 256


def span_mask(begins, spans):
    """True for the tokens whose first character lies in a span."""
    mask = np.zeros(len(begins), bool)
    for begin, end in spans:
        mask |= (begins >= begin) & (begins < end)
    return mask


def batches(documents):
    batch, characters = [], 0
    for document in documents:
        batch.append(document)
        characters += len(document.text)
        if len(batch) == BATCH or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def with_end(document, end):
    """The document, its end-of-text token added where it is missing; that one is to be learnt."""
    if len(document.tokens) and document.tokens[-1] == end:
        return document
    trained = None if document.trained is None else np.append(document.trained, True)
    return TokenDocument(np.append(document.tokens, np.uint32(end)), trained, document.where)


class ByteTokenizer:
    """The engine's built-in tokenizer: bytes are ids 0..255, 256 ends a document."""

    name, hash, vocab_size = "byte", 0, 257
    bos, eos = None, BYTE_END

    def __init__(self, chat_template):
        template = chat_template and chat_template.read_text(encoding="utf-8")
        self.chat = ChatTemplate(template, {}) if template else None

    def _tokenize(self, document):
        tokens = np.frombuffer(document.text.encode("utf-8") + b"\0", np.uint8).astype(np.uint32)
        tokens[-1] = BYTE_END
        if document.trained is None:
            return TokenDocument(tokens, where=document.where)
        begins = np.cumsum((tokens[:-1] & 0xC0) != 0x80) - 1  # Of each byte's character.
        mask = np.append(span_mask(begins, document.trained), True)
        return TokenDocument(tokens, mask, document.where)

    def tokenize(self, documents):
        return map(self._tokenize, documents)


class HuggingFaceTokenizer:
    def __init__(self, path, chat_template, eos_token, append_eos):
        from tokenizers import Tokenizer

        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # The library raises nothing narrower.
            raise SourceError(f"tokenizer {path} cannot be read: {error}") from error
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
        try:
            config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except ValueError as error:
            raise SourceError(f"{path}: not JSON: {error}") from error
        if not isinstance(config, dict):
            raise SourceError(f"{path} must hold a JSON object")
        return config

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
        offsets = np.fromiter(chain.from_iterable(encoding.offsets), np.int64).reshape(-1, 2)
        mask = span_mask(offsets[:, 0], spans)
        added = offsets[:, 1] == 0
        mask[added] = False  # Put in by the tokenizer, not part of the text ...
        if len(mask) and added[-1]:
            mask[-1] = True  # ... but how a document ends is to be learnt.
        return mask

    def _document(self, document, encoding):
        tokens = np.array(encoding.ids, dtype=np.uint32)
        mask = None if document.trained is None else self._mask(encoding, document.trained)
        tokenized = TokenDocument(tokens, mask, document.where)
        return with_end(tokenized, self.eos) if self._append_eos else tokenized

    def _encodings(self, batch, is_chat):
        """(index, encoding) of the documents whose special tokens are, or are not, in the text."""
        indices = [index for index, document in enumerate(batch) if document.is_chat == is_chat]
        texts = [batch[index].text for index in indices]
        return zip(indices, self._tokenizer.encode_batch(texts, add_special_tokens=not is_chat))

    def tokenize(self, documents):
        for batch in batches(documents):
            encodings = dict(self._encodings(batch, False)) | dict(self._encodings(batch, True))
            for index, document in enumerate(batch):
                yield self._document(document, encodings.pop(index))


def open_tokenizer(name, chat_template, eos_token, append_eos):
    if name == "byte":
        if eos_token:
            raise SourceError("--eos-token is not for bytes, whose end-of-text token is 256")
        return ByteTokenizer(chat_template)
    path = Path(name)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        raise SourceError(
            f"tokenizer {path} does not exist (a tokenizer.json, a folder with one, or 'byte')"
        )
    return HuggingFaceTokenizer(path, chat_template, eos_token, append_eos)
