"""Reads chats as other protocols write them: messages with a role, of one text or in parts."""

from typing import Any, TypeGuard


def texts_of(messages: object, role: str) -> list[str]:
    """Return the texts of the messages of a role, the oldest first; of anything else, none."""
    texts = []
    for message in messages if isinstance(messages, list) else ():
        if is_object(message) and message.get("role") == role:
            texts.append(_content_text(message.get("content")))

    return texts


def _content_text(content: object) -> str:
    if isinstance(content, str):
        return content

    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if is_object(part)]
    return "\n".join(text for text in texts if isinstance(text, str))


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is an object."""
    return isinstance(value, dict)
