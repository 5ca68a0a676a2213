"""Renders conversations by a model's chat template, and finds what the assistant says in them."""

import json

from input_files import SourceError


class ChatTemplate:
    """Renders conversations, and finds what the assistant says in them: that is what is trained."""

    def __init__(self, template, special_tokens):
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = lambda value, **options: json.dumps(
            value, ensure_ascii=False, **options
        )
        environment.globals["raise_exception"] = self._refuse
        try:
            self._template = environment.from_string(template)
        except TemplateError as error:
            raise SourceError(
                f"the chat template is not Jinja that can be read: {error}"
            ) from error
        self._special_tokens = special_tokens

    @staticmethod
    def _refuse(message):
        raise SourceError(f"the chat template refuses: {message}")

    def _render(self, messages, tools, add_generation_prompt):
        try:
            return self._template.render(
                messages=messages,
                tools=tools,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self._special_tokens,
            )
        except SourceError:
            raise
        except Exception as error:  # A template is a program from outside.
            raise SourceError(f"the chat template fails: {error}") from error

    def _before(self, messages, tools):
        try:
            return self._render(messages, tools, add_generation_prompt=True)
        except SourceError as error:
            if messages:
                raise
            raise SourceError(
                f"the assistant speaks first, and {error} with nothing before it; leave that turn out"
            ) from error

    def _turn(self, messages, tools, index, text):
        """The span of assistant message `index`: from where generation would begin to the end of its turn."""
        before = self._before(messages[:index], tools)
        after = self._render(messages[: index + 1], tools, add_generation_prompt=False)
        if not after.startswith(before) or not text.startswith(after):
            raise SourceError(
                f"the chat template renders message {index} differently as the conversation goes on, "
                "so what the assistant said cannot be marked"
            )
        return len(before), len(after.rstrip())

    def render(self, messages, tools, where):
        """(text, spans of what the assistant says)."""
        if not isinstance(messages, list) or not all(
            isinstance(message, dict) for message in messages
        ):
            raise SourceError(
                f"{where}: 'messages' must be a list of objects with 'role' and 'content'"
            )
        try:
            text = self._render(messages, tools, add_generation_prompt=False)
            spans = [
                self._turn(messages, tools, index, text)
                for index, message in enumerate(messages)
                if message.get("role") == "assistant"
            ]
        except SourceError as error:
            raise SourceError(f"{where}: {error}") from error
        return text, spans
