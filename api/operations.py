"""The endpoints as openapi.json tells them: what each takes, answers and refuses."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from api.models.envelopes import (
    AnalysisEnvelope,
    AnswerEnvelope,
    ArtefactFilesEnvelope,
    ClearedEnvelope,
    CompletionsEnvelope,
    ConversationEnvelope,
    ConversationListEnvelope,
    DatabaseListEnvelope,
    DeletedEnvelope,
    DeletedFileEnvelope,
    DescribedTableEnvelope,
    EtlEnvelope,
    ExampleEnvelope,
    ExampleListEnvelope,
    ExamplesEnvelope,
    FeedbackEnvelope,
    FileDraftEnvelope,
    FileEnvelope,
    FileListEnvelope,
    FileOrDraftEnvelope,
    ImpactEnvelope,
    ImportedEnvelope,
    LessonEnvelope,
    LessonListEnvelope,
    LineageEnvelope,
    LoggedOutEnvelope,
    MeEnvelope,
    ProposedEnvelope,
    ReadyEnvelope,
    ReloadedEnvelope,
    RenamedEnvelope,
    RunEnvelope,
    SchemaSearchEnvelope,
    SemanticFileEnvelope,
    SemanticProposalListEnvelope,
    SqlResultEnvelope,
    TablePageEnvelope,
    UnreadyEnvelope,
    VerdictEnvelope,
)
from api.models.etl_models import EtlAskBody
from api.models.file_models import ConfirmFileBody, FileChangesBody
from api.models.model_base import Envelope
from api.models.request_models import (
    AnalyzeBody,
    ArtefactQuery,
    AskBody,
    ChatRequestBody,
    CompletionQuery,
    DatabaseQuery,
    EventsQuery,
    ExportQuery,
    FeedbackBody,
    ImpactQuery,
    LangQuery,
    LearntQuery,
    LineageQuery,
    LoginAnswerQuery,
    LoginQuery,
    PageQuery,
    ProposalBody,
    ReaderQuery,
    RenameBody,
    RequestFields,
    ResumeBody,
    ReviewVerdictBody,
    SearchQuery,
    SqlBody,
)
from api.models.vanna_models import ChatResponseModel

Method = Literal["get", "post", "patch", "delete"]


@dataclass(frozen=True)
class OperationReply:
    """A reply that is no error.

    Attributes:
        model: the model of its JSON; None: it has no fixed form, or is no JSON.
        media: the media types that it may have, where that is not JSON alone; empty: no body.
    """

    status: int
    description: str
    model: type[BaseModel] | None = None
    media: tuple[str, ...] = ("application/json",)


@dataclass(frozen=True)
class Header:
    """A header of a request."""

    name: str
    schema: dict[str, Any]
    description: str = ""
    required: bool = False


@dataclass(frozen=True)
class Operation:
    """One method of one address.

    Attributes:
        path: with the names of its parts in braces.
        operation_id: by which generated clients call it.
        query: the models of its query string.
        body: the model of its JSON body, or the media type of another one; None: it takes none.
        needs_body: whether a request without the body is refused.
        errors: the statuses of errors that it may answer.
    """

    method: Method
    path: str
    operation_id: str
    tag: str
    summary: str
    replies: tuple[OperationReply, ...]
    errors: tuple[int, ...] = ()
    description: str = ""
    query: tuple[type[RequestFields], ...] = ()
    headers: tuple[Header, ...] = ()
    body: type[RequestFields] | str | None = None
    needs_body: bool = True


JSON_LINES = "application/x-ndjson"
ZIP = "application/zip"
# Offered beside media types that generators of clients don't know; they then give the bytes.
BYTES = "application/octet-stream"
FORM_DATA = "multipart/form-data"

IDEMPOTENCY_KEY = Header(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255},
    "The same key with the same body is the same run",
)
LAST_EVENT_ID = Header(
    "Last-Event-ID",
    {"type": "string", "minLength": 1},
    "As `after`; what a browser's EventSource sends",
)
HANDSHAKE = (
    Header("Upgrade", {"type": "string", "enum": ["websocket"]}, required=True),
    Header("Sec-WebSocket-Version", {"type": "string", "enum": ["13"]}, required=True),
    Header("Sec-WebSocket-Key", {"type": "string"}, "16 random bytes in Base64", required=True),
    Header(
        "Sec-WebSocket-Protocol",
        {"type": "string"},
        "`citu.chat`; and from pages, which can set no other header, `citu.bearer.` followed by "
        "the API key",
    ),
)

TAGS = {
    "ask": "Questions in plain language, answered at once or as a stream of events",
    "runs": "A question being answered: followed, cancelled, or given the answer it waits for",
    "conversations": "What was asked before, per user",
    "sql": "SQL of the caller's own, judged or run under the same guard",
    "learning": "What users say of answers, what is learnt from it, and who reviews it",
    "schema": "What the database holds, as the caller may see it",
    "files": "Files that people bring: drafts to check, and tables to ask as the database `files`",
    "etl": "Transformations: where tables come from, drafts of new ones, and their files",
    "caller": "Who the API key says you are",
    "vanna": "Vanna's chat protocol, for its web component and its other clients",
    "mcp": "The Model Context Protocol, for assistants and editors",
    "agui": "AG-UI, for front ends that show an agent's work while it happens",
    "completions": "OpenAI's chat completions, for front ends that know no other protocol",
    "service": "Whether Citu is alive and ready, and these documents",
}

_OF_EVERY_CALL = (400, 401, 403, 414, 503)


def refusals(*more: int) -> tuple[int, ...]:
    """Return the statuses of errors: those of almost every operation, and these."""
    return tuple(sorted((*_OF_EVERY_CALL, *more)))


_SIGN_IN_REFUSALS = (
    "404: OIDC_CLIENT_ID is not set. 429: too many attempts to sign in from this address."
)

OPERATIONS = (
    Operation(
        "post",
        "/api/v0/ask_agent",
        "askAgent",
        "ask",
        "Ask a question and wait for the whole answer",
        headers=(IDEMPOTENCY_KEY,),
        body=AskBody,
        replies=(
            OperationReply(
                200,
                "The answer, or what the user can do when no SQL could be written "
                "(`sql_generation_failed`)",
                AnswerEnvelope,
            ),
        ),
        errors=refusals(409, 422, 429, 500, 504),
    ),
    Operation(
        "post",
        "/api/v0/ask_agent_stream",
        "askAgentStream",
        "ask",
        "Ask a question and watch it being answered",
        description="Server-Sent Events. Each frame is `id: <run_id>:<seq>` and one `data:` line "
        "holding an envelope whose `data.type` is `progress`, `token`, `tool` (schema "
        "`ToolEvent`), `result` (`ResultEvent`), `question` (`AskedUser`), `completed` "
        "(`CompletedAnswer`, `CompletedEtlAnswer`) or `error` (`Error`); "
        "exactly one of the last three ends the stream. After `question` the run waits for "
        "`resume`. Comments keep a quiet connection open.",
        headers=(IDEMPOTENCY_KEY,),
        body=AskBody,
        replies=(OperationReply(200, "The event stream", media=("text/event-stream",)),),
        errors=refusals(409, 422, 429),
    ),
    Operation(
        "post",
        "/api/v0/etl/ask",
        "askEtl",
        "etl",
        "Draft a transformation and wait for it, or for the first question back",
        description="As `askAgent` with `agent: etl`.",
        headers=(IDEMPOTENCY_KEY,),
        body=EtlAskBody,
        replies=(
            OperationReply(
                200, "The draft with its evidence, or what the run asks its user", EtlEnvelope
            ),
        ),
        errors=refusals(409, 422, 429, 500, 504),
    ),
    Operation(
        "post",
        "/api/v0/etl/ask_stream",
        "askEtlStream",
        "etl",
        "Draft a transformation and watch it being made",
        description="As `askAgentStream` with `agent: etl`.",
        headers=(IDEMPOTENCY_KEY,),
        body=EtlAskBody,
        replies=(OperationReply(200, "The event stream", media=("text/event-stream",)),),
        errors=refusals(409, 422, 429),
    ),
    Operation(
        "get",
        "/api/v0/runs/{run_id}/artefact",
        "readArtefact",
        "etl",
        "What a run made, as a zip archive",
        description="The same bytes every time; `ETag` is their SHA-256.",
        query=(
            ArtefactQuery,
            ReaderQuery,
        ),
        replies=(OperationReply(200, "The archive", media=(ZIP, BYTES)),),
        errors=refusals(404),
    ),
    Operation(
        "get",
        "/api/v0/runs/{run_id}/artefact/files",
        "listArtefactFiles",
        "etl",
        "The files of what a run made",
        query=(
            ArtefactQuery,
            ReaderQuery,
        ),
        replies=(OperationReply(200, "The list", ArtefactFilesEnvelope),),
        errors=refusals(404),
    ),
    Operation(
        "get",
        "/api/v0/runs/{run_id}/artefact/files/{path}",
        "readArtefactFile",
        "etl",
        "One of these files",
        query=(
            ArtefactQuery,
            ReaderQuery,
        ),
        replies=(OperationReply(200, "The file", media=("text/plain",)),),
        errors=refusals(404),
    ),
    Operation(
        "post",
        "/api/v0/sql/validate",
        "validateSql",
        "sql",
        "Judge one statement without running it",
        body=SqlBody,
        replies=(OperationReply(200, "The verdict, whatever it is", VerdictEnvelope),),
        errors=refusals(429, 504),
    ),
    Operation(
        "post",
        "/api/v0/sql/run",
        "runSql",
        "sql",
        "Run one statement as the agent would run its own",
        body=SqlBody,
        replies=(OperationReply(200, "What it returned", SqlResultEnvelope),),
        errors=refusals(409, 422, 429, 500, 504),
    ),
    Operation(
        "get",
        "/api/v0/conversations",
        "listConversations",
        "conversations",
        "A user's conversations, those with the latest turn first",
        query=(
            PageQuery,
            ReaderQuery,
        ),
        replies=(OperationReply(200, "One page", ConversationListEnvelope),),
        errors=refusals(),
    ),
    Operation(
        "delete",
        "/api/v0/conversations",
        "deleteConversations",
        "conversations",
        "Forget all of a user's conversations",
        query=(ReaderQuery,),
        replies=(OperationReply(200, "How many there were", DeletedEnvelope),),
        errors=refusals(),
    ),
    Operation(
        "get",
        "/api/v0/conversations/{conversation_id}",
        "readConversation",
        "conversations",
        "A conversation and its turns",
        query=(
            PageQuery,
            ReaderQuery,
        ),
        replies=(
            OperationReply(
                200,
                "One page of turns, oldest first; the first page holds the latest",
                ConversationEnvelope,
            ),
        ),
        errors=refusals(404),
    ),
    Operation(
        "patch",
        "/api/v0/conversations/{conversation_id}",
        "renameConversation",
        "conversations",
        "Give a conversation a title",
        body=RenameBody,
        replies=(OperationReply(200, "It has it", RenamedEnvelope),),
        errors=refusals(404),
    ),
    Operation(
        "delete",
        "/api/v0/conversations/{conversation_id}",
        "deleteConversation",
        "conversations",
        "Forget a conversation",
        query=(ReaderQuery,),
        replies=(OperationReply(200, "It is forgotten", DeletedEnvelope),),
        errors=refusals(404),
    ),
    Operation(
        "delete",
        "/api/v0/conversations/{conversation_id}/turns",
        "clearConversation",
        "conversations",
        "Forget a conversation's turns and keep it with its title",
        query=(ReaderQuery,),
        replies=(OperationReply(200, "It has none", ClearedEnvelope),),
        errors=refusals(404),
    ),
    Operation(
        "post",
        "/api/v0/runs",
        "startRun",
        "runs",
        "Ask a question and get its run's id at once",
        description="For clients that can only GET a stream, as a browser's EventSource: the run "
        "is followed at `/api/v0/runs/{run_id}/events`. It goes on when nobody follows it; with "
        "`on_disconnect: cancel` it ends when the last client that follows it leaves.",
        headers=(IDEMPOTENCY_KEY,),
        body=AskBody,
        replies=(OperationReply(202, "The run, or that of the same Idempotency-Key", RunEnvelope),),
        errors=refusals(422, 429),
    ),
    Operation(
        "get",
        "/api/v0/runs/{run_id}",
        "readRun",
        "runs",
        "A run's state, and its answer when it has ended",
        query=(ReaderQuery,),
        replies=(OperationReply(200, "The run", RunEnvelope),),
        errors=refusals(404),
    ),
    Operation(
        "get",
        "/api/v0/runs/{run_id}/events",
        "followRun",
        "runs",
        "A run's events from the beginning or behind one, then live to the end",
        query=(
            EventsQuery,
            ReaderQuery,
        ),
        headers=(LAST_EVENT_ID,),
        replies=(
            OperationReply(
                200,
                "The events, as of `POST /api/v0/ask_agent_stream`",
                media=("text/event-stream",),
            ),
            OperationReply(204, "There is nothing after that event and never will be", media=()),
        ),
        errors=refusals(404),
    ),
    Operation(
        "get",
        "/api/v0/runs/{run_id}/export",
        "exportRun",
        "runs",
        "An answer's rows as a file",
        description="The answer's SQL is run again under the same guard, for up to "
        "EXPORT_MAX_ROWS rows. It is sent while the rows are read; a connection that breaks "
        "means that the file is not whole.",
        query=(
            ExportQuery,
            ReaderQuery,
        ),
        replies=(
            OperationReply(
                200,
                "The file",
                media=(
                    "text/csv",
                    "application/json",
                    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                    "image/png",
                ),
            ),
        ),
        errors=refusals(404, 409, 422, 429, 504),
    ),
    Operation(
        "post",
        "/api/v0/runs/{run_id}/analyze",
        "analyzeRun",
        "runs",
        "Figures about an answer's rows",
        description="Totals, shares, change, outliers and forecasts, computed by SQL over all "
        "rows or by statsmodels, never by a model. The answer's SQL is run again under the same "
        "guard.",
        body=AnalyzeBody,
        replies=(OperationReply(200, "What was found", AnalysisEnvelope),),
        errors=refusals(404, 409, 422, 429, 504),
    ),
    Operation(
        "post",
        "/api/v0/runs/{run_id}/cancel",
        "cancelRun",
        "runs",
        "End a run",
        query=(ReaderQuery,),
        replies=(
            OperationReply(200, "The run, which has ended", RunEnvelope),
            OperationReply(202, "The run, which is about to end", RunEnvelope),
        ),
        errors=refusals(404),
    ),
    Operation(
        "post",
        "/api/v0/runs/{run_id}/resume",
        "resumeRun",
        "runs",
        "Answer what a waiting run has asked",
        description="The run goes on, on the worker that takes the answer; its further events "
        "follow at /events.",
        body=ResumeBody,
        replies=(OperationReply(202, "The run, which goes on", RunEnvelope),),
        errors=refusals(404, 409, 429),
    ),
    Operation(
        "get",
        "/api/v0/etl/lineage",
        "getLineage",
        "etl",
        "Where a table or column comes from, and what is made of it",
        query=(
            LineageQuery,
            ReaderQuery,
            DatabaseQuery,
        ),
        replies=(
            OperationReply(
                200,
                "Views that the caller may see, as JSON, or as Mermaid's or Cypher's text",
                LineageEnvelope,
                media=("application/json", "text/plain"),
            ),
        ),
        errors=refusals(404, 429, 504),
    ),
    Operation(
        "get",
        "/api/v0/etl/impact",
        "getImpact",
        "etl",
        "What breaks if a table or column is dropped, renamed or retyped",
        query=(
            ImpactQuery,
            ReaderQuery,
            DatabaseQuery,
        ),
        replies=(OperationReply(200, "What depends on it, and why", ImpactEnvelope),),
        errors=refusals(404, 429, 504),
    ),
    Operation(
        "get",
        "/api/v0/semantic",
        "getSemanticFile",
        "schema",
        "The semantic file and what is wrong with it",
        description="For reviewers.",
        query=(ReaderQuery, DatabaseQuery),
        replies=(OperationReply(200, "The file as it is", SemanticFileEnvelope),),
        errors=refusals(404, 500),
    ),
    Operation(
        "get",
        "/api/v0/semantic/proposals",
        "listSemanticProposals",
        "schema",
        "Changes of the semantic file that somebody wants",
        description="For reviewers.",
        query=(ReaderQuery, DatabaseQuery),
        replies=(OperationReply(200, "The newest first", SemanticProposalListEnvelope),),
        errors=refusals(500),
    ),
    Operation(
        "post",
        "/api/v0/semantic/proposals",
        "proposeSemanticChange",
        "schema",
        "Propose a change of the semantic file",
        description="For reviewers. Nothing is changed: an operator applies it by a command.",
        query=(DatabaseQuery,),
        body=ProposalBody,
        replies=(OperationReply(201, "The proposal", ProposedEnvelope),),
        errors=refusals(404, 409, 500),
    ),
    Operation(
        "delete",
        "/api/v0/semantic/proposals/{proposal_id}",
        "withdrawSemanticProposal",
        "schema",
        "Withdraw a proposal of one's own",
        description="For reviewers.",
        query=(ReaderQuery, DatabaseQuery),
        replies=(OperationReply(200, "The proposal, withdrawn", ProposedEnvelope),),
        errors=refusals(404, 409, 500),
    ),
    Operation(
        "get",
        "/api/v0/schema/search",
        "searchSchema",
        "schema",
        "Tables that have to do with a question, and why",
        query=(
            SearchQuery,
            ReaderQuery,
            DatabaseQuery,
        ),
        replies=(
            OperationReply(
                200, "Those that the caller may read, the most relevant first", SchemaSearchEnvelope
            ),
        ),
        errors=refusals(429, 504),
    ),
    Operation(
        "post",
        "/api/v0/schema/reload",
        "reloadSchema",
        "schema",
        "Read the descriptions of the tables again",
        description="They are kept for CATALOG_TTL_S. Reads them again in the worker that takes "
        "the request, unless it has done so in the last five seconds.",
        query=(ReaderQuery, DatabaseQuery),
        replies=(OperationReply(200, "They are read", ReloadedEnvelope),),
        errors=refusals(429, 504),
    ),
    Operation(
        "get",
        "/api/v0/schema/tables",
        "listTables",
        "schema",
        "All tables that the caller may read",
        query=(
            PageQuery,
            ReaderQuery,
            DatabaseQuery,
        ),
        replies=(OperationReply(200, "One page, by schema and name", TablePageEnvelope),),
        errors=refusals(429, 504),
    ),
    Operation(
        "get",
        "/api/v0/schema/tables/{name}",
        "describeTable",
        "schema",
        "One table with its columns and keys",
        query=(ReaderQuery, DatabaseQuery),
        replies=(
            OperationReply(
                200, "The table as far as the caller may read it", DescribedTableEnvelope
            ),
        ),
        errors=refusals(404, 429, 504),
    ),
    Operation(
        "post",
        "/api/v0/feedback",
        "giveFeedback",
        "learning",
        "Say what you think of an answer",
        description="`satisfied` makes the question and its SQL an example of the user's own. "
        "`need_modification` takes the corrected SQL, which is guarded, planned and run as the "
        "caller, and makes that one the example. `unsatisfied` leaves a lesson: why the answer "
        "was wrong. The latest feedback of a user for a run counts, and repeating it changes "
        "nothing.",
        body=FeedbackBody,
        replies=(OperationReply(200, "What is learnt from it", FeedbackEnvelope),),
        errors=refusals(404, 409, 422, 429, 500, 504),
    ),
    Operation(
        "get",
        "/api/v0/knowledge/examples",
        "listKnowledgeExamples",
        "learning",
        "Examples that the caller may see",
        description="Their own and what is shared; reviewers see everybody's. A page may have "
        "less than `limit` even when others follow.",
        query=(
            LearntQuery,
            PageQuery,
            ReaderQuery,
            DatabaseQuery,
        ),
        replies=(OperationReply(200, "One page, the newest first", ExampleListEnvelope),),
        errors=refusals(500),
    ),
    Operation(
        "delete",
        "/api/v0/knowledge/examples/{example_id}",
        "deleteExample",
        "learning",
        "Forget an example",
        description="One's own as long as it is not shared; reviewers may delete any.",
        query=(ReaderQuery, DatabaseQuery),
        replies=(OperationReply(200, "It is forgotten", DeletedEnvelope),),
        errors=refusals(404, 500),
    ),
    Operation(
        "post",
        "/api/v0/knowledge/examples/{example_id}/approve",
        "approveExample",
        "learning",
        "Share it with everybody",
        description="For reviewers, and never for what they brought themselves. `trust` is what "
        "the reviewer saw: if it has changed since, the answer is 409.",
        query=(ReaderQuery, DatabaseQuery),
        body=ReviewVerdictBody,
        needs_body=False,
        replies=(OperationReply(200, "What it is now", ExampleEnvelope),),
        errors=refusals(404, 409, 500),
    ),
    Operation(
        "post",
        "/api/v0/knowledge/examples/{example_id}/certify",
        "certifyExample",
        "learning",
        "Share it with everybody, before all others",
        description="For reviewers, and never for what they brought themselves. `trust` is what "
        "the reviewer saw: if it has changed since, the answer is 409.",
        query=(ReaderQuery, DatabaseQuery),
        body=ReviewVerdictBody,
        needs_body=False,
        replies=(OperationReply(200, "What it is now", ExampleEnvelope),),
        errors=refusals(404, 409, 500),
    ),
    Operation(
        "post",
        "/api/v0/knowledge/examples/{example_id}/reject",
        "rejectExample",
        "learning",
        "Find it wrong: it is no longer used or shown to models",
        description="For reviewers, and never for what they brought themselves. `trust` is what "
        "the reviewer saw: if it has changed since, the answer is 409.",
        query=(ReaderQuery, DatabaseQuery),
        body=ReviewVerdictBody,
        needs_body=False,
        replies=(OperationReply(200, "What it is now", ExampleEnvelope),),
        errors=refusals(404, 409, 500),
    ),
    Operation(
        "get",
        "/api/v0/knowledge/lessons",
        "listKnowledgeLessons",
        "learning",
        "Lessons that the caller may see",
        description="Their own and what is shared; reviewers see everybody's. A page may have "
        "less than `limit` even when others follow.",
        query=(
            LearntQuery,
            PageQuery,
            ReaderQuery,
            DatabaseQuery,
        ),
        replies=(OperationReply(200, "One page, the newest first", LessonListEnvelope),),
        errors=refusals(500),
    ),
    Operation(
        "delete",
        "/api/v0/knowledge/lessons/{lesson_id}",
        "deleteLesson",
        "learning",
        "Forget a lesson",
        description="One's own as long as it is not shared; reviewers may delete any.",
        query=(ReaderQuery, DatabaseQuery),
        replies=(OperationReply(200, "It is forgotten", DeletedEnvelope),),
        errors=refusals(404, 500),
    ),
    Operation(
        "post",
        "/api/v0/knowledge/lessons/{lesson_id}/approve",
        "approveLesson",
        "learning",
        "Share it with everybody",
        description="For reviewers, and never for what they brought themselves. `trust` is what "
        "the reviewer saw: if it has changed since, the answer is 409.",
        query=(ReaderQuery, DatabaseQuery),
        body=ReviewVerdictBody,
        needs_body=False,
        replies=(OperationReply(200, "What it is now", LessonEnvelope),),
        errors=refusals(404, 409, 500),
    ),
    Operation(
        "post",
        "/api/v0/knowledge/lessons/{lesson_id}/reject",
        "rejectLesson",
        "learning",
        "Find it wrong: it is no longer used or shown to models",
        description="For reviewers, and never for what they brought themselves. `trust` is what "
        "the reviewer saw: if it has changed since, the answer is 409.",
        query=(ReaderQuery, DatabaseQuery),
        body=ReviewVerdictBody,
        needs_body=False,
        replies=(OperationReply(200, "What it is now", LessonEnvelope),),
        errors=refusals(404, 409, 500),
    ),
    Operation(
        "post",
        "/api/v0/knowledge/import",
        "importLines",
        "learning",
        "Bring examples and lessons as JSON Lines",
        description="For reviewers. The body is JSON Lines under any media type. Each line is "
        "`{question, sql, lang?}`; lines of an export "
        "will do. SQL is guarded and planned, not run. What is added is the reviewer's own "
        "(`personal`) until another reviewer approves it.",
        query=(ReaderQuery, DatabaseQuery),
        body=BYTES,
        replies=(OperationReply(200, "What became of each line", ImportedEnvelope),),
        errors=refusals(429, 500, 504),
    ),
    Operation(
        "get",
        "/api/v0/knowledge/export",
        "exportLines",
        "learning",
        "Examples and lessons as JSON Lines",
        description="What the lists show, examples first. A connection that breaks means that it "
        "is not whole.",
        query=(
            LearntQuery,
            ReaderQuery,
            DatabaseQuery,
        ),
        replies=(OperationReply(200, "One object per line", media=(JSON_LINES, BYTES)),),
        errors=refusals(500),
    ),
    Operation(
        "get",
        "/api/v0/completions",
        "completeQuestion",
        "ask",
        "What the words under the cursor may become",
        description="Names of tables and columns, stored values, and questions asked before: the "
        "caller's own and reviewed ones. Nothing shows that the caller may not read.",
        query=(CompletionQuery, ReaderQuery, DatabaseQuery),
        replies=(OperationReply(200, "The list", CompletionsEnvelope),),
        errors=refusals(504),
    ),
    Operation(
        "get",
        "/api/v0/examples",
        "listExamples",
        "ask",
        "Questions to begin with, about the connected database",
        query=(LangQuery, DatabaseQuery),
        replies=(
            OperationReply(
                200,
                "A few questions; none when nothing in the database can be asked about",
                ExamplesEnvelope,
            ),
        ),
        errors=refusals(429, 504),
    ),
    Operation(
        "get",
        "/api/v0/databases",
        "listDatabases",
        "ask",
        "The databases that the caller may ask",
        description="One that does not answer is `unavailable`; the others are listed all the "
        "same.",
        query=(ReaderQuery,),
        replies=(OperationReply(200, "The list", DatabaseListEnvelope),),
        errors=refusals(429, 504),
    ),
    Operation(
        "post",
        "/api/v0/files",
        "uploadFile",
        "files",
        "Bring a file; the answer is a draft of its tables",
        description="CSV, TSV, XLSX, or a ZIP of these, as the part `file`. Nothing is loaded "
        "before the draft is confirmed.",
        query=(ReaderQuery,),
        body=FORM_DATA,
        replies=(OperationReply(201, "The draft", FileDraftEnvelope),),
        errors=refusals(404, 429, 504),
    ),
    Operation(
        "get",
        "/api/v0/files",
        "listFiles",
        "files",
        "The caller's files and drafts, files shared with its groups, and what it may still keep",
        query=(ReaderQuery,),
        replies=(OperationReply(200, "The list", FileListEnvelope),),
        errors=refusals(404),
    ),
    Operation(
        "get",
        "/api/v0/files/{file_id}",
        "readFile",
        "files",
        "A file, or a draft",
        query=(ReaderQuery,),
        replies=(OperationReply(200, "The file", FileOrDraftEnvelope),),
        errors=refusals(404),
    ),
    Operation(
        "patch",
        "/api/v0/files/{file_id}",
        "changeFile",
        "files",
        "Correct a draft, or say which groups may ask a loaded file",
        body=FileChangesBody,
        replies=(OperationReply(200, "The draft or the file", FileOrDraftEnvelope),),
        errors=refusals(404, 429, 504),
    ),
    Operation(
        "post",
        "/api/v0/files/{file_id}/confirm",
        "confirmFile",
        "files",
        "Load a draft as tables",
        description="In one transaction: readers see the tables as they were, or as they will be. "
        "409: the file that the draft changes is another one by now.",
        body=ConfirmFileBody,
        needs_body=False,
        replies=(OperationReply(200, "The file, and what became of its tables", FileEnvelope),),
        errors=refusals(404, 409, 429, 504),
    ),
    Operation(
        "post",
        "/api/v0/files/{file_id}/replace",
        "replaceFile",
        "files",
        "Bring a file whose rows take the place of another's; a draft with the differences",
        query=(ReaderQuery,),
        body=FORM_DATA,
        replies=(OperationReply(201, "The draft", FileDraftEnvelope),),
        errors=refusals(404, 429, 504),
    ),
    Operation(
        "post",
        "/api/v0/files/{file_id}/append",
        "appendFile",
        "files",
        "Bring a file whose rows are added to another's; a draft with the differences",
        query=(ReaderQuery,),
        body=FORM_DATA,
        replies=(OperationReply(201, "The draft", FileDraftEnvelope),),
        errors=refusals(404, 429, 504),
    ),
    Operation(
        "delete",
        "/api/v0/files/{file_id}",
        "deleteFile",
        "files",
        "Delete a file with its tables, or a draft",
        query=(ReaderQuery,),
        replies=(OperationReply(200, "It is gone", DeletedFileEnvelope),),
        errors=refusals(404),
    ),
    Operation(
        "get",
        "/api/v0/me",
        "readMe",
        "caller",
        "Who the caller is, and what it may do",
        query=(ReaderQuery,),
        replies=(OperationReply(200, "Whom the request acts as", MeEnvelope),),
        errors=refusals(),
    ),
    Operation(
        "post",
        "/api/vanna/v2/chat_sse",
        "chatStream",
        "vanna",
        "Ask and watch the answer being put together",
        description="Server-Sent Events without names and ids: each `data:` line is one chunk, "
        "and the last one `[DONE]`. An empty message is answered by a greeting with questions to "
        "ask. What goes wrong after the start is shown by chunks.",
        body=ChatRequestBody,
        replies=(OperationReply(200, "The chunks", media=("text/event-stream",)),),
        errors=(
            400,
            401,
            403,
            422,
            429,
            500,
            503,
        ),
    ),
    Operation(
        "post",
        "/api/vanna/v2/chat_poll",
        "chatPoll",
        "vanna",
        "Ask and wait for all chunks of the answer",
        description="The same request as to `chat_sse` is answered by the same run, also while "
        "that is going on. What goes wrong after the start is shown by chunks.",
        body=ChatRequestBody,
        replies=(OperationReply(200, "All chunks", ChatResponseModel),),
        errors=(
            400,
            401,
            403,
            422,
            429,
            500,
            503,
        ),
    ),
    Operation(
        "get",
        "/api/vanna/v2/chat_websocket",
        "openChatSocket",
        "vanna",
        "Open a WebSocket: many questions over one connection, answered one after another",
        description="The handshake of RFC 6455, version 13. Each message is a request as JSON, "
        "with `message` and, if wanted, `conversation_id`, `request_id`, `metadata` and "
        "`user_id`; its answer is one chunk per frame, the last of which has the `type` "
        "`completion`. OpenAPI can't describe the frames; see the documentation of the HTTP API.",
        headers=HANDSHAKE,
        replies=(OperationReply(101, "The WebSocket is open", media=()),),
        errors=(
            400,
            401,
            403,
            426,
            501,
            503,
        ),
    ),
    Operation(
        "post",
        "/mcp",
        "handleMcpMessage",
        "mcp",
        "Send one JSON-RPC message of the Model Context Protocol",
        description="The versions 2026-07-28 and 2025-11-25 and its predecessors. A call with a "
        "progress token is answered by a stream of messages to a client that accepts one. The "
        "protocol's own errors are JSON-RPC errors.",
        body="application/json",
        replies=(
            OperationReply(
                200, "The reply, or a stream", media=("application/json", "text/event-stream")
            ),
            OperationReply(202, "A notification was taken", media=()),
        ),
        errors=refusals(404, 429),
    ),
    Operation(
        "post",
        "/api/agui",
        "runAgent",
        "agui",
        "Ask, and watch the run as AG-UI's events",
        description="The body is AG-UI's RunAgentInput; of its messages the user's last is read. "
        "`forwardedProps` may have `agent`, `database`, `lang`, `routing_mode`, `user_id`.",
        body="application/json",
        replies=(OperationReply(200, "The events", media=("text/event-stream",)),),
        errors=refusals(429),
    ),
    Operation(
        "get",
        "/v1/models",
        "listModels",
        "completions",
        "The agents, as models",
        replies=(OperationReply(200, "As OpenAI lists models"),),
        errors=(400, 401, 403, 503),
    ),
    Operation(
        "get",
        "/v1/models/{name}",
        "readModel",
        "completions",
        "One agent, as a model",
        replies=(OperationReply(200, "As OpenAI describes a model"),),
        errors=(400, 401, 403, 404, 503),
    ),
    Operation(
        "post",
        "/v1/chat/completions",
        "completeChat",
        "completions",
        "Answer the last message of a chat, in Markdown",
        description="As OpenAI's endpoint: `model`, `messages`, `stream`, `stream_options`, "
        "`user`; what tunes a model is passed over. Errors have OpenAI's shape.",
        body="application/json",
        replies=(
            OperationReply(
                200,
                "The completion, or its pieces",
                media=("application/json", "text/event-stream"),
            ),
        ),
        errors=refusals(404, 409, 422, 429, 500, 504),
    ),
    Operation(
        "get",
        "/health",
        "health",
        "service",
        "Is the process alive",
        replies=(OperationReply(200, "Yes", Envelope),),
        errors=(),
    ),
    Operation(
        "get",
        "/ready",
        "ready",
        "service",
        "Can questions be answered now; one status per dependency, at most a second old",
        replies=(
            OperationReply(200, "Yes", ReadyEnvelope),
            OperationReply(
                503,
                "No: a required dependency is unavailable, or it is being stopped",
                UnreadyEnvelope,
            ),
        ),
        errors=(429,),
    ),
    Operation(
        "get",
        "/.well-known/oauth-protected-resource",
        "protectedResource",
        "service",
        "Where access tokens for the service are had (RFC 9728)",
        description="With `/mcp` after it: of that address alone. 404: no issuer is set.",
        replies=(OperationReply(200, "The metadata"),),
        errors=(404,),
    ),
    Operation(
        "get",
        "/.well-known/oauth-protected-resource/{resource}",
        "protectedResourceOf",
        "service",
        "The same for one address: `mcp`",
        replies=(OperationReply(200, "The metadata"),),
        errors=(404,),
    ),
    Operation(
        "get",
        "/login",
        "begin_login",
        "service",
        "Sends a browser to the issuer, where its user signs in",
        description=_SIGN_IN_REFUSALS,
        query=(LoginQuery,),
        replies=(OperationReply(303, "To the issuer; or to the page, with the reason", media=()),),
        errors=(404, 429),
    ),
    Operation(
        "get",
        "/login/callback",
        "end_login",
        "service",
        "Where the issuer sends the browser back; begins a session",
        description=_SIGN_IN_REFUSALS,
        query=(LoginAnswerQuery,),
        replies=(OperationReply(303, "To the page", media=()),),
        errors=(404, 429),
    ),
    Operation(
        "post",
        "/logout",
        "log_out",
        "service",
        "Ends the session of this browser",
        description="404: OIDC_CLIENT_ID is not set. 403: another page than the service's asks.",
        replies=(OperationReply(200, "It has ended", LoggedOutEnvelope),),
        errors=(403, 404),
    ),
    Operation(
        "get",
        "/openapi.json",
        "openapi",
        "service",
        "This document",
        replies=(OperationReply(200, "OpenAPI 3.1"),),
        errors=(),
    ),
    Operation(
        "get",
        "/docs",
        "reference",
        "service",
        "This document as a page, to read and to try out",
        replies=(OperationReply(200, "HTML", media=("text/html",)),),
        errors=(),
    ),
    Operation(
        "get",
        "/",
        "page",
        "service",
        "The page",
        replies=(OperationReply(200, "HTML", media=("text/html",)),),
        errors=(),
    ),
    Operation(
        "get",
        "/c/{conversation_id}",
        "conversation_page",
        "service",
        "The page, which shows that conversation if it is the caller's",
        replies=(OperationReply(200, "HTML", media=("text/html",)),),
        errors=(),
    ),
)
