"""Reads documents from text and JSONL files, each with the parts of it that are trained."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

BLANK = " \t\r\f\v"


class SourceError(Exception):
    """An input file breaks its format's rules."""


@dataclass
class Document:
    text: str
    trained: list | None = None  # character spans [begin, end); None: all
    is_chat: bool = False  # the template has written the special tokens already


def read_text(path):
    data = Path(path).read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}: byte {error.start} is not valid UTF-8") from error


def blank_line_documents(text):
    """Documents are separated by one or more lines of nothing but white space."""
    lines = []
    for line in text.split("\n"):
        if line.strip(BLANK):
            lines.append(line)
        elif lines:
            yield Document("\n".join(lines))
            lines = []
    if lines:
        yield Document("\n".join(lines))


def text_documents(path, separator):
    text = read_text(path)
    if separator == "blank-line":
        yield from blank_line_documents(text)
    elif text:
        yield Document(text)


def text_field(record, key, where):
    value = record.get(key)
    if not isinstance(value, str):
        raise SourceError(f"{where}: '{key}' must be a string")
    return value


def record_document(record, chat, where):
    if not isinstance(record, dict):
        raise SourceError(f"{where}: a line must be a JSON object")
    if "messages" in record:
        if chat is None:
            raise SourceError(
                f"{where}: 'messages' needs a chat template: none lies beside the tokenizer "
                "(tokenizer_config.json or chat_template.jinja); give --chat-template"
            )
        return chat.document(record, where)
    if "prompt" in record:
        prompt, completion = text_field(record, "prompt", where), text_field(
            record, "completion", where
        )
        return Document(prompt + completion, [(len(prompt), len(prompt) + len(completion))])
    if "text" in record:
        return Document(text_field(record, "text", where))
    raise SourceError(
        f"{where}: needs 'text', 'prompt' and 'completion', or 'messages'; has {sorted(record)}"
    )


def jsonl_documents(path, chat):
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip(BLANK):
            continue
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise SourceError(f"{where}: not JSON: {error}") from error
        yield record_document(record, chat, where)


class ChatTemplate:
    """Renders conversations, and finds what the assistant says in them: that is what is trained."""

    def __init__(self, template, special_tokens):
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = lambda value, **options: json.dumps(
            value, ensure_ascii=False, **options
        )
        environment.globals["raise_exception"] = self._refuse
        self._template = environment.from_string(template)
        self._special_tokens = special_tokens

    @staticmethod
    def _refuse(message):
        raise SourceError(f"the chat template refuses: {message}")

    def _render(self, record, messages, add_generation_prompt):
        from jinja2 import TemplateError

        try:
            return self._template.render(
                messages=messages,
                tools=record.get("tools"),
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self._special_tokens,
            )
        except (TemplateError, TypeError) as error:
            raise SourceError(f"the chat template fails: {error}") from error

    def _turn(self, record, index, text):
        """The span of assistant message `index`: from where generation would begin to the end of its turn."""
        messages = record["messages"]
        before = self._render(record, messages[:index], add_generation_prompt=True)
        after = self._render(record, messages[: index + 1], add_generation_prompt=False)
        if not after.startswith(before) or not text.startswith(after):
            raise SourceError(
                f"the chat template renders message {index} differently as the conversation goes on, "
                "so what the assistant said cannot be marked"
            )
        return len(before), len(re.sub(r"\s+$", "", after))

    def document(self, record, where):
        messages = record["messages"]
        if not isinstance(messages, list) or not all(
            isinstance(message, dict) for message in messages
        ):
            raise SourceError(
                f"{where}: 'messages' must be a list of objects with 'role' and 'content'"
            )
        try:
            text = self._render(record, messages, add_generation_prompt=False)
            spans = [
                self._turn(record, index, text)
                for index, message in enumerate(messages)
                if message.get("role") == "assistant"
            ]
        except SourceError as error:
            raise SourceError(f"{where}: {error}") from error
        return Document(text, spans, is_chat=True)


def read_documents(paths, file_format, separator, chat):
    for path in paths:
        if file_format == "jsonl":
            yield from jsonl_documents(path, chat)
        else:
            yield from text_documents(path, separator)
