"""The kinds of records that fine-tuning data comes in, and the documents that they make."""

from dataclasses import dataclass

from input_files import SourceError, UnfitInput

ALPACA_TASK = "Below is an instruction that describes a task"
ALPACA_WITH_INPUT = (
    f"{ALPACA_TASK}, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n"
)
ALPACA_ALONE = (
    f"{ALPACA_TASK}. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Response:\n"
)
FIELDS_SHOWN = 8
SHAREGPT_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "system": "system",
}
SHAREGPT_TOOL_ROLES = ("function_call", "observation", "tool", "tools", "function", "ipython")


@dataclass
class Document:
    text: str
    trained: list | None = None  # character spans [begin, end); None: all
    is_chat: bool = False  # the template has written the special tokens already
    where: str = ""


def text_field(record, key, where, default=None):
    """The string under the key; one that may be left out has a default."""
    value = record.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        problem = "is missing" if key not in record else "must be a string"
        raise SourceError(f"{where}: '{key}' {problem}")
    return value


def completed(prompt, completion, where):
    span = (len(prompt), len(prompt) + len(completion))
    return Document(prompt + completion, [span], where=where)


def whole_text(record, where):
    return Document(text_field(record, "text", where), where=where)


def prompt_and_completion(record, where):
    return completed(
        text_field(record, "prompt", where), text_field(record, "completion", where), where
    )


def message(role, content):
    return {"role": role, "content": content}


def alpaca_messages(record, where):
    """Of instruction and input, joined by a newline, and output; turns of 'history' come before, and 'system' first."""
    system = text_field(record, "system", where, default="")
    history = record.get("history") or []
    if not isinstance(history, list) or not all(is_pair_of_texts(turn) for turn in history):
        raise SourceError(f"{where}: 'history' must be a list of pairs of strings")
    turns = [message("system", system)] if system else []
    for question, answer in history:
        turns += [message("user", question), message("assistant", answer)]
    asked = [text_field(record, "instruction", where), text_field(record, "input", where, "")]
    turns.append(message("user", "\n".join(part for part in asked if part)))
    return turns + [message("assistant", text_field(record, "output", where))]


def is_pair_of_texts(turn):
    return isinstance(turn, list) and len(turn) == 2 and all(isinstance(text, str) for text in turn)


def alpaca_prompt(record, where):
    """The prompt that Alpaca was trained with, for a model without a chat template."""
    for key in ("history", "system"):
        if record.get(key):
            raise SourceError(
                f"{where}: the prompt of --prompt-template alpaca has no place for '{key}'; "
                f"use a chat template"
            )
    given = text_field(record, "input", where, default="")
    prompt = (ALPACA_WITH_INPUT if given else ALPACA_ALONE).format(
        instruction=text_field(record, "instruction", where), input=given
    )
    return completed(prompt, text_field(record, "output", where), where)


def sharegpt_turn(turn, index, where):
    if not isinstance(turn, dict):
        raise SourceError(f"{where}: turn {index} must be an object with 'from' and 'value'")
    keys = ("from", "value") if "from" in turn else ("role", "content")
    speaker, content = turn.get(keys[0]), turn.get(keys[1])
    if speaker in SHAREGPT_TOOL_ROLES:
        raise SourceError(
            f"{where}: turn {index} is of '{speaker}', and tool calls are not taken from ShareGPT records; "
            f"write them as 'messages' with 'tool_calls' and 'tools', which chat templates know"
        )
    if not isinstance(speaker, str) or speaker not in SHAREGPT_ROLES:
        raise SourceError(
            f"{where}: turn {index} is of {speaker!r}, which is none of {', '.join(SHAREGPT_ROLES)}"
        )
    if not isinstance(content, str):
        raise SourceError(f"{where}: turn {index}: '{keys[1]}' must be a string")
    return message(SHAREGPT_ROLES[speaker], content)


def sharegpt_messages(record, where):
    conversation = record.get("conversations")
    if not isinstance(conversation, list) or not conversation:
        raise SourceError(f"{where}: 'conversations' must be a list of turns, one at least")
    if record.get("tools"):
        raise SourceError(
            f"{where}: 'tools' are not taken from ShareGPT records; write them as 'messages' with 'tools'"
        )
    turns = [sharegpt_turn(turn, index, where) for index, turn in enumerate(conversation)]
    system = text_field(record, "system", where, default="")
    if not system:
        return turns
    if turns[0]["role"] == "system":
        raise SourceError(f"{where}: has a 'system' text and a system turn; leave one out")
    return [message("system", system), *turns]


def own_messages(record, where):
    return record.get("messages")


@dataclass
class RecordKind:
    field: str  # who has it is of this kind, if of none before
    title: str
    document: object = None  # (record, where)
    messages: object = None  # (record, where), where a chat template renders it


# In this order: the records of Alpaca itself also have a 'text', rendered already.
KINDS = {
    "messages": RecordKind("messages", "records with 'messages'", messages=own_messages),
    "sharegpt": RecordKind(
        "conversations", "ShareGPT records ('conversations')", messages=sharegpt_messages
    ),
    "completion": RecordKind(
        "prompt", "records with 'prompt' and 'completion'", prompt_and_completion
    ),
    "alpaca": RecordKind(
        "instruction",
        "Alpaca records ('instruction' and 'output')",
        alpaca_prompt,
        alpaca_messages,
    ),
    "text": RecordKind("text", "records with 'text'", whole_text),
}


def kind_of(record):
    return next((name for name, kind in KINDS.items() if kind.field in record), None)


def missing_fields(record):
    return (
        "needs 'text', 'prompt' and 'completion', 'messages', 'instruction' and 'output', or 'conversations'; "
        f"has {', '.join(map(repr, sorted(record)[:FIELDS_SHOWN])) or 'no field'}"
    )


def has_lone_surrogate(text):
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


class Renderer:
    """Makes documents of records, by the chat template where their kind has messages."""

    def __init__(self, chat, prompt_template=None):
        self._chat, self._prompt_template = chat, prompt_template

    def _document(self, name, record, where):
        kind = KINDS[name]
        if self._prompt_template == "alpaca" and name != "alpaca":
            raise UnfitInput(
                f"{where}: is one of the {kind.title}; --prompt-template alpaca is for Alpaca's only"
            )
        if kind.messages is None or self._prompt_template == "alpaca":
            return kind.document(record, where)
        messages = kind.messages(record, where)
        if self._chat is None:
            other = ", or --prompt-template alpaca" if kind.document else ""
            raise UnfitInput(
                f"{where}: '{kind.field}' needs a chat template: none lies beside the tokenizer "
                f"(tokenizer_config.json or chat_template.jinja); give --chat-template{other}"
            )
        text, spans = self._chat.render(messages, record.get("tools"), where)
        return Document(text, spans, is_chat=True, where=where)

    def __call__(self, name, record, where):
        document = self._document(name, record, where)
        if has_lone_surrogate(document.text):
            raise SourceError(f"{where}: has half of a surrogate pair, which is no character")
        return document
