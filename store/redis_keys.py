"""The names of keys in Redis. They hold digests of ids, so that no id can look like another or like
part of a name.
"""

from store.record_json import key

LEASES = "citu:leases"  # sorted set: run key by the microsecond until which its lease lasts


def conversation(conversation_key: str) -> str:
    """Hash: `id` and `title` (JSON), `created` and `updated` (µs), `last` (number of turns there
    ever were).
    """
    return f"citu:conversation:{conversation_key}"


def turns(conversation_key: str) -> str:
    """List: a conversation's turns (JSON), the latest last."""
    return f"citu:turns:{conversation_key}"


def conversations(user_key: str) -> str:
    """Sorted set: a user's conversation keys by the microsecond of their latest turn."""
    return f"citu:conversations:{user_key}"


def run(run_key: str) -> str:
    """Hash: `head` (JSON), `user` and `worker` (keys), `state`, `last_seq`, and if true
    `cancelling` and `taken`.

    A run that has asked its user also has `waiting` (JSON) and `interrupt` (its key) for the
    question that is open or whose answer it works on, `answer` (JSON), and `settled:<key>` for each
    question that was answered or that the run's end has closed. A run that another worker took over
    has `worker_id` (JSON), `held_from`, its `last_seq` then, and `takeovers`, how often that was.
    """
    return f"citu:run:{run_key}"


def frames(run_key: str) -> str:
    """Stream: entry `<seq>-0` holds a frame as `data`."""
    return f"citu:frames:{run_key}"


def artefact(run_key: str) -> str:
    """Hash: `user` (key), `data` and `preview` of the artefact of a run."""
    return f"citu:artefact:{run_key}"


def artefacts(user_key: str) -> str:
    """Sorted set: the keys of a user's runs with artefacts by the microsecond they were
    kept.
    """
    return f"citu:artefacts:{user_key}"


def conversation_artefacts(conversation_key: str) -> str:
    """Set: the keys of a conversation's runs with artefacts."""
    return f"citu:conversation-artefacts:{conversation_key}"


def checkpoints(thread_key: str) -> str:
    """Hash: the checkpoints of a graph's thread, see `redis_checkpoints`."""
    return f"citu:checkpoints:{thread_key}"


def spending(day: str, account: str) -> str:
    """Hash: `tokens` and `micros` that an account spent on a day."""
    return f"citu:spending:{day}:{digest(account)}"


def document(name: str) -> str:
    """Hash: `revision` and `text` of a document that all hosts share."""
    return f"citu:document:{name}"


def idempotency_key(user_id: str, name: str) -> str:
    """Hash: `run_id` and `fingerprint` (JSON) of a user's Idempotency-Key."""
    return f"citu:claim:{digest(user_id, name)}"


def learned(record_key: str) -> str:
    """Hash: a learned record: `text`, `uses`, and `shelves`, the keys of its record sets with
    blanks between.
    """
    return f"citu:learned:{record_key}"


def record_set(set_key: str) -> str:
    """Sorted set: keys of the records of a record set by their positions."""
    return f"citu:shelf:{set_key}"


def record_set_revision(set_key: str) -> str:
    """String: the microsecond of a record set's last change; it stays when the set is empty."""
    return f"citu:shelf-revision:{set_key}"


def digest(*ids: str) -> str:
    """Return the digest of ids, in hexadecimal."""
    return key(*ids).hex()


def milliseconds(seconds: float) -> int:
    """Return seconds as whole milliseconds, which Redis takes."""
    return max(1, round(seconds * 1000))
