"""The requests that `RATE_LIMIT` counts: those that use the datasource, a model or the issuer.

Every endpoint stands in this table, and a test compares it with the app's addresses. One that does
not stand here is counted, so that nothing escapes by being forgotten.
"""

from collections.abc import Mapping
from typing import Literal

Charge = Literal["counted", "by message", "free"]
"""`by message`: the endpoint counts what it is sent, because not all of it costs something."""

CHARGES: Mapping[str, Charge] = {
    "agui.run_agent": "counted",
    "analyses.analyze_run": "counted",
    "ask.ask_agent": "counted",
    "ask.ask_agent_stream": "counted",
    "ask.ask_etl": "counted",
    "ask.ask_etl_stream": "counted",
    "ask.start_run": "counted",
    "databases.list_databases": "counted",
    "examples.list_examples": "counted",
    "exports.export_run": "counted",
    "feedback.give_feedback": "counted",
    "files.append_file": "counted",
    "files.change_file": "counted",
    "files.confirm_file": "counted",
    "files.replace_file": "counted",
    "files.upload_file": "counted",
    "learning.import_lines": "counted",
    "lineage.impact": "counted",
    "lineage.lineage": "counted",
    "semantic.propose_change": "counted",
    "runs.resume_run": "counted",
    # Both may have the issuer asked.
    "sign_in.begin_login": "counted",
    "sign_in.end_login": "counted",
    "schema.describe_table": "counted",
    "schema.list_tables": "counted",
    "schema.reload_schema": "counted",
    "schema.search_schema": "counted",
    "sql.run_sql": "counted",
    "sql.validate_sql": "counted",
    # Titles and the like cost nothing.
    "chat_completions.complete_chat": "by message",
    "chat_completions.list_models": "free",
    "chat_completions.read_model": "free",
    # Only calls of tools and reading cost something.
    "mcp.handle_message": "by message",
    # Vanna's clients repeat a message when their connection broke; that joins its run.
    "vanna.chat_poll": "by message",
    "vanna.chat_sse": "by message",
    "vanna_socket.chat_websocket_False": "free",  # answers that a WebSocket is needed
    "vanna_socket.chat_websocket_True": "by message",
    # These read and change what Citu itself keeps.
    "artefacts.list_artefact_files": "free",
    "artefacts.read_artefact": "free",
    "artefacts.read_artefact_file": "free",
    "examples.complete": "free",  # asked while somebody types; runs no statement
    "conversations.clear_conversation": "free",
    "conversations.delete_conversation": "free",
    "conversations.delete_conversations": "free",
    "conversations.list_conversations": "free",
    "conversations.read_conversation": "free",
    "conversations.rename_conversation": "free",
    "files.delete_file": "free",
    "semantic.list_proposals": "free",
    "semantic.read_semantic_file": "free",
    "semantic.withdraw_proposal": "free",
    "files.list_files": "free",
    "files.read_file": "free",
    "learning.approve_example": "free",
    "learning.approve_lesson": "free",
    "learning.certify_example": "free",
    "learning.delete_example": "free",
    "learning.delete_lesson": "free",
    "learning.export_lines": "free",
    "learning.list_examples": "free",
    "learning.list_lessons": "free",
    "learning.reject_example": "free",
    "learning.reject_lesson": "free",
    "me.read_me": "free",
    "runs.cancel_run": "free",
    "runs.follow_run": "free",
    "runs.read_run": "free",
    # These are the same for everybody; `/ready` has a limit of its own.
    "health.health": "free",
    "health.ready": "free",
    "openapi.openapi": "free",
    "page.conversation": "free",
    "page.index": "free",
    "protected_resource.read_metadata": "free",
    "sign_in.log_out": "free",
    "reference.reference": "free",
    "reference.static": "free",
    "static": "free",
}


def charge_of(endpoint: str | None) -> Charge:
    """Return how requests for the endpoint count; None: there is no such address."""
    if endpoint is None:
        return "free"

    return CHARGES.get(endpoint, "counted")
