"""The tree of all errors of Citu; the class decides the HTTP status and the `error_type`.

    CituError
    ├── InvalidRequest        400 invalid_request
    ├── Unauthorized          401 unauthorized          no key, or none that is known
    ├── KeysUnavailable       503 keys_unavailable      the file of API keys can't be read: nobody
                              is let in
    ├── IssuerUnavailable     503 issuer_unavailable    the keys by which access tokens are checked
                              can't be had
    ├── InsufficientScope     403 insufficient_scope    the access token lacks a scope
    ├── Forbidden             403 forbidden             the caller is known, and may not do this
    ├── ForbiddenOrigin       403 forbidden_origin      a browser sent it for another site, or under
                              a foreign name
    ├── NotFound              404 not_found
    ├── Conflict              409 conflict              the same Idempotency-Key is being answered
    ├── IdempotencyKeyReused  422 idempotency_key_reused the key belongs to another request
    ├── UpgradeRequired       426 upgrade_required      the address is a WebSocket's
    ├── RequestTimeout        408 request_timeout       the client sends its request too slowly
    ├── UriTooLong            414 uri_too_long
    ├── HeadersTooLarge       431 headers_too_large
    ├── TooManyConnections    429 too_many_connections  of one address
    ├── RateLimited           429 rate_limited
    ├── BudgetExhausted       429 budget_exhausted      of tokens or money, for the day
    ├── StatementRejected         what is wrong with one SQL statement
    │   ├── ForbiddenStatement 403 forbidden_keywords   it is not a read-only query
    │   ├── ForbiddenObject   403 forbidden_object      it reads what may not be read
    │   ├── InvalidSql        422 syntax_error          PostgreSQL can't parse or plan it; the only
        repairable kind
    │   ├── ValidationFailed  422 validation_exception  it could not be proven valid
    │   └── CostExceeded      422 cost_exceeded
    ├── TooManyStreams        503 too_many_streams
    ├── ServiceStopping       503 service_stopping      it takes no new questions any more
    ├── SocketsUnavailable    501 sockets_unavailable   the server that runs Citu can't give
                              WebSockets away
    ├── QueryTimeout          504 query_timeout
    ├── LlmUnavailable        503 llm_unavailable
    │   └── LlmMisconfigured  503 llm_unavailable       not retryable: the key, the model's name,
        the request
    │       └── PromptTooLong 503 llm_unavailable       the prompt does not fit into the model's
            context
    ├── DatabaseUnavailable   503 database_unavailable  the database that is asked
    ├── StoreUnavailable      503 store_unavailable     Citu's own memory: conversations and runs
    ├── Cancelled             499 cancelled
    │   └── ServiceEnding     499 cancelled             retryable: Citu is being stopped or
        restarted
    └── InternalError         500 internal_error
        ├── WorkerLost        500 internal_error        retryable: the process that answered has
                              died
        ├── LeaseLost         500 internal_error        retryable: another process goes on with the
                              run
        ├── StateTooLarge     500 internal_error        what a run needs to go on later is more than
                              is kept
        └── StateLost         500 internal_error        retryable: the store has lost what a run
                              needs to go on

Drivers' exceptions are translated where they occur (`raise … from exc`), and the user reads the
`Text` given here. So no traceback, DSN or key gets into an answer.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from common.text import Lang, Text
from common.values import PlanEstimate, Usage


class CituError(Exception):
    """A failure with a sentence for the user in both languages.

    Attributes:
        code: HTTP status.
        error_type: the stable name clients switch on.
        title: the envelope's `message`.
        text: what happened and what to do about it.
        retryable: whether the same request may succeed later.
        retry_after_s: seconds to wait before trying again, when known.
    """

    code: ClassVar[int] = 500
    error_type: ClassVar[str] = "internal_error"
    title: ClassVar[Text] = Text("服务内部错误", "Internal error")
    retryable: ClassVar[bool] = False

    def __init__(self, text: Text, *, retry_after_s: int | None = None) -> None:
        super().__init__(text.en)
        self.text = text
        self.retry_after_s = retry_after_s

    def message(self, lang: Lang) -> str:
        """Return the sentence for the user in `lang`."""
        return self.text.to(lang)

    def details(self) -> dict[str, Any]:
        """Return further keys of the error's `data` that clients can act on."""
        return {}


class InvalidRequest(CituError):
    """The request can't be understood; `field` names the offending key of the body, if any."""

    code = 400
    error_type = "invalid_request"
    title = Text("请求参数错误", "Invalid request")

    def __init__(self, text: Text, *, field: str | None = None) -> None:
        super().__init__(text)
        self.field = field

    def details(self) -> dict[str, Any]:
        if self.field:
            return {"field": self.field}

        return {}


class BodyTooLarge(InvalidRequest):
    """The request's body is longer than the service reads."""


class NotFound(CituError):
    """There is no such resource; `suggestions` are names that exist and may have been meant."""

    code = 404
    error_type = "not_found"
    title = Text("资源不存在", "Not found")

    def __init__(self, text: Text, *, suggestions: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.suggestions = tuple(suggestions)

    def details(self) -> dict[str, Any]:
        if self.suggestions:
            return {"suggestions": list(self.suggestions)}

        return {}


class Unauthorized(CituError):
    """The caller gave no API key or access token where one is needed, or one that is not valid.

    Attributes:
        challenge: the header `WWW-Authenticate`.
        sign_in: where people sign in with a browser, from the service's address on; empty: nowhere.
    """

    code = 401
    error_type = "unauthorized"
    title = Text("未授权", "Unauthorized")
    challenge: str = "Bearer"
    sign_in: str = ""

    def details(self) -> dict[str, Any]:
        if self.sign_in:
            return {"sign_in": self.sign_in}

        return {}


class InsufficientScope(CituError):
    """The caller's access token lacks a scope.

    Attributes:
        challenge: the header `WWW-Authenticate`.
    """

    code = 403
    error_type = "insufficient_scope"
    title = Text("权限范围不足", "Insufficient scope")
    challenge: str = 'Bearer error="insufficient_scope"'


class IssuerUnavailable(CituError):
    """The keys of the tokens' issuer can't be had, so no access token can be checked."""

    code = 503
    error_type = "issuer_unavailable"
    title = Text("令牌签发者不可用", "Token issuer unavailable")
    retryable = True


class KeysUnavailable(CituError):
    """The API keys can't be read now, so the caller's key can't be checked."""

    code = 503
    error_type = "keys_unavailable"
    title = Text("API 密钥不可用", "API keys unavailable")
    retryable = True


class Forbidden(CituError):
    """The caller's groups don't give the right to this."""

    code = 403
    error_type = "forbidden"
    title = Text("没有权限", "Not allowed")


class ForbiddenOrigin(CituError):
    """The request has no key, and a browser may have sent it for another site."""

    code = 403
    error_type = "forbidden_origin"
    title = Text("来源不被允许", "Origin not allowed")


class Conflict(CituError):
    """Something else stands in the way; `retryable` says whether this request may succeed later.

    Attributes:
        run_id: the run that stands in the way, when it is one.
    """

    code = 409
    error_type = "conflict"
    title = Text("请求冲突", "Conflict")

    def __init__(
        self,
        text: Text,
        *,
        run_id: str | None = None,
        retry_after_s: int | None = None,
        retryable: bool = True,
    ) -> None:
        super().__init__(text, retry_after_s=retry_after_s)
        self.run_id = run_id
        self._is_retryable = retryable

    @property
    def retryable(self) -> bool:  # type: ignore[override]
        """Tell whether the same request may succeed later."""
        return self._is_retryable

    def details(self) -> dict[str, Any]:
        if self.run_id:
            return {"run_id": self.run_id}

        return {}


class IdempotencyKeyReused(CituError):
    """An Idempotency-Key was sent before, with another body."""

    code = 422
    error_type = "idempotency_key_reused"
    title = Text("Idempotency-Key 已被使用", "Idempotency-Key already used")


class RequestTimeout(CituError):
    """The client sent its request too slowly."""

    code = 408
    error_type = "request_timeout"
    title = Text("请求超时", "Request timeout")
    retryable = True


class HeadersTooLarge(CituError):
    """The request's headers are longer, or more, than the server reads."""

    code = 431
    error_type = "headers_too_large"
    title = Text("请求头过大", "Headers too large")


class TooManyConnections(CituError):
    """The client's address has as many connections open as one may have."""

    code = 429
    error_type = "too_many_connections"
    title = Text("连接过多", "Too many connections")
    retryable = True


class UriTooLong(CituError):
    """The request's first line, with its address, is longer than the server reads."""

    code = 414
    error_type = "uri_too_long"
    title = Text("请求地址过长", "URI too long")


class UpgradeRequired(CituError):
    """The address is for WebSockets, and the request asks for none."""

    code = 426
    error_type = "upgrade_required"
    title = Text("需要 WebSocket", "A WebSocket is required")


class RateLimited(CituError):
    """The caller asks more often than allowed."""

    code = 429
    error_type = "rate_limited"
    title = Text("请求过于频繁", "Too many requests")
    retryable = True


class BudgetExhausted(CituError):
    """The caller, or a group of theirs, has spent the day's budget for models.

    Attributes:
        renews_at: when the next day's budget begins, ISO 8601.
    """

    code = 429
    error_type = "budget_exhausted"
    title = Text("额度已用完", "Budget exhausted")
    retryable = True

    def __init__(self, text: Text, *, renews_at: str, retry_after_s: int) -> None:
        super().__init__(text, retry_after_s=retry_after_s)
        self.renews_at = renews_at

    def details(self) -> dict[str, Any]:
        return {"renews_at": self.renews_at}


class StatementRejected(CituError):
    """One SQL statement that will not be run."""

    code = 422
    title = Text("SQL验证失败", "SQL validation failed")


class ForbiddenStatement(StatementRejected):
    """The statement does something other than read.

    Attributes:
        operation: what it does: `DELETE`, `multiple statements`, …
        usage: what the model was used for, if it was the model that found out.
    """

    code = 403
    error_type = "forbidden_keywords"

    def __init__(self, operation: str, *, hint: Text | None = None) -> None:
        zh = f"不允许的操作: {operation}。本系统只支持查询操作(SELECT)。"
        en = f"Operation not allowed: {operation}. Only queries (SELECT) are supported."
        if hint is not None:
            zh += hint.zh
            en += f" {hint.en}"

        super().__init__(Text(zh, en))
        self.operation = operation
        self.usage = Usage()


class ForbiddenObject(StatementRejected):
    """The statement uses a forbidden function, table or column; `name` is that object."""

    code = 403
    error_type = "forbidden_object"

    def __init__(self, name: str, text: Text) -> None:
        super().__init__(text)
        self.name = name


class InvalidSql(StatementRejected):
    """PostgreSQL refused to parse, plan or run the statement.

    Attributes:
        detail: PostgreSQL's own message (one line, its language), or ours in English, for the
            repair and for the user.
        detail_zh: our message in Chinese; None for PostgreSQL's.
        sqlstate: five-character SQLSTATE, when the server gave one.
        position: 1-based character offset into the statement, when known.
        hint: PostgreSQL's HINT line, when it gave one.
        suggestions: names that exist and may have been meant, as SQL writes them.
    """

    error_type = "syntax_error"

    def __init__(
        self,
        detail: str,
        *,
        detail_zh: str | None = None,
        sqlstate: str | None = None,
        position: int | None = None,
        hint: str | None = None,
        suggestions: Sequence[str] = (),
    ) -> None:
        super().__init__(_invalid(Text(detail_zh or detail, detail), sqlstate, suggestions))
        self.detail = detail
        self.detail_zh = detail_zh
        self.sqlstate = sqlstate
        self.position = position
        self.hint = hint
        self.suggestions = tuple(suggestions)

    def details(self) -> dict[str, Any]:
        if self.suggestions:
            return {"suggestions": list(self.suggestions)}

        return {}


# SQLSTATE classes of errors in the statement's words and names. Other classes are about values that
# it met running.
_ABOUT_THE_TEXT = ("0A", "3F", "42")
# Causes in Chinese by SQLSTATE, because PostgreSQL's own messages are in the server's language.
_CAUSES_ZH = {
    "21000": "子查询返回多于一行",
    "22001": "文本过长",
    "22003": "数值超出范围",
    "22007": "日期或时间的格式不正确",
    "22008": "日期或时间超出范围",
    "2200X": "XML 格式不正确",
    "22012": "除数为零",
    "22023": "函数的参数值不正确",
    "2201B": "正则表达式不正确",
    "2201E": "对数的参数超出范围",
    "2201F": "乘方或开方的参数超出范围",
    "22P02": "值的格式与类型不符",
    "23514": "值不符合约束",
    "55000": "对象尚不可读取",
}


def _invalid(detail: Text, sqlstate: str | None, suggestions: Sequence[str]) -> Text:
    if sqlstate is None or sqlstate.startswith(_ABOUT_THE_TEXT):
        zh = f"SQL语法或结构错误: {detail.zh}"
        en = f"The SQL is not valid: {detail.en}"
    else:
        cause = _CAUSES_ZH.get(sqlstate)
        named = ""
        if cause:
            named = f"（{cause}）"

        zh = f"SQL执行出错{named}: {detail.zh}"
        en = f"The SQL failed: {detail.en}"

    if not suggestions:
        return Text(zh, en)

    return Text(
        f"{zh}。您是不是要找：{'、'.join(suggestions)}？",
        f"{en}. Did you mean: {', '.join(suggestions)}?",
    )


class ValidationFailed(StatementRejected):
    """The statement could not be proven valid for a reason that a repair can't fix."""

    error_type = "validation_exception"


class CostExceeded(StatementRejected):
    """The plan's estimate, `plan` if known, is more expensive than the operator allows."""

    error_type = "cost_exceeded"

    def __init__(self, text: Text, *, plan: PlanEstimate | None = None) -> None:
        super().__init__(text)
        self.plan = plan

    def details(self) -> dict[str, Any]:
        plan = None
        if self.plan:
            plan = self.plan.shown()
        if plan:
            return {"plan": plan}

        return {}


class ServiceStopping(CituError):
    """The process is about to end and takes no further question; another one does."""

    code = 503
    error_type = "service_stopping"
    title = Text("服务正在停止", "Service stopping")
    retryable = True


class TooManyStreams(CituError):
    """All slots for running questions are taken."""

    code = 503
    error_type = "too_many_streams"
    title = Text("服务繁忙", "Too many open streams")
    retryable = True


class SocketsUnavailable(CituError):
    """The way the service is run leaves no room for WebSockets."""

    code = 501
    error_type = "sockets_unavailable"
    title = Text("无法使用 WebSocket", "No WebSockets here")


class QueryTimeout(CituError):
    """The query, or the whole request, ran longer than allowed."""

    code = 504
    error_type = "query_timeout"
    title = Text("查询超时", "Query timed out")
    retryable = True


class LlmUnavailable(CituError):
    """The language model gives no usable reply, and the rules have no answer either."""

    code = 503
    error_type = "llm_unavailable"
    title = Text("大模型不可用", "Language model unavailable")
    retryable = True


class LlmMisconfigured(LlmUnavailable):
    """The model's endpoint refuses requests until somebody changes the configuration."""

    retryable = False


class PromptTooLong(LlmMisconfigured):
    """The prompt does not fit into the model's context; a shorter one may."""


class DatabaseUnavailable(CituError):
    """The database can't be reached, or has no connection to spare."""

    code = 503
    error_type = "database_unavailable"
    title = Text("数据库不可用", "Database unavailable")
    retryable = True


class StoreUnavailable(CituError):
    """The store of conversations and runs can't be reached or doesn't answer in time."""

    code = 503
    error_type = "store_unavailable"
    title = Text("会话存储不可用", "Conversation store unavailable")
    retryable = True


class Cancelled(CituError):
    """The caller left or asked to stop."""

    code = 499
    error_type = "cancelled"
    title = Text("已取消", "Cancelled")


class ServiceEnding(Cancelled):
    """The process that works on the question is being stopped; another process can answer it."""

    retryable = True


class InternalError(CituError):
    """A bug in Citu; details are in the log under the request id, never in the answer."""


class WorkerLost(InternalError):
    """The process that answered a question has died; another process reports it."""

    retryable = True

    def __init__(self) -> None:
        super().__init__(
            Text(
                "回答这个问题的进程意外结束，请重新提问。",
                "The process that answered has died; ask again.",
            )
        )


class StateTooLarge(InternalError):
    """The state of a waiting run is larger than the `max_bytes` that the store keeps."""

    def __init__(self, max_bytes: int) -> None:
        most = f"{max_bytes // (1024 * 1024)} MB"
        super().__init__(
            Text(
                f"这次运行的中间结果太大，无法保存（上限 {most}）。请缩小问题的范围。",
                f"What this run has gathered is too large to be kept ({most} at most). Ask for "
                f"less at once.",
            )
        )


class LeaseLost(InternalError):
    """The run is another worker's by now: what this one does for it no longer counts."""

    retryable = True

    def __init__(self) -> None:
        super().__init__(
            Text(
                "另一个进程已接手这次运行，请查看它的结果。",
                "Another process goes on with this run; look at its result.",
            )
        )


class StateLost(InternalError):
    """The store has lost a part of what a run needs to go on; asking again starts a new run."""

    retryable = True

    def __init__(self) -> None:
        super().__init__(
            Text(
                "继续这次运行所需的数据已丢失，请重新提问。",
                "What this run needs to go on has been lost; ask again.",
            )
        )


CANCELLED_TEXT = Text("请求已取消。", "The request was cancelled.")
ENDING_TEXT = Text(
    "服务正在停止或重启，请稍后重试。",
    "The service is being stopped or restarted; ask again in a moment.",
)
INTERNAL_ERROR_TEXT = Text(
    "服务内部错误，请稍后重试；如持续出现，请向管理员提供 request_id。",
    "Something went wrong on our side. Try again; if it persists, give the request_id to your "
    "administrator.",
)
