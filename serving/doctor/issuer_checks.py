"""Checks whether the issuer of access tokens can be reached, and people can sign in there."""

from collections.abc import Iterator
from typing import Any

from api.access.issuer_documents import IssuerFailure, address_in, document_at, metadata_of
from common.check_report import CheckResult, failed, passed, warned
from common.text import Text

_ADVICE = Text(
    "检查 OAUTH_ISSUER（必须与签发者元数据中的 issuer 完全一致）和网络。",
    "Check OAUTH_ISSUER, which must be what the issuer's metadata say to the letter, and the way "
    "there.",
)


def issuer_state(issuer: str, jwks_url: str, callback: str | None) -> Iterator[CheckResult]:
    """Look at what the issuer publishes; nothing is said where none is set.

    Args:
        jwks_url: the address of its keys; empty: its metadata say it.
        callback: where it sends browsers back; None: nobody signs in there.
    """
    if not issuer:
        return

    try:
        metadata = metadata_of(issuer)
        document_at(jwks_url or address_in(metadata, "jwks_uri"))
    except IssuerFailure as failure:
        message = Text(
            f"无法使用令牌签发者：{failure}", f"The issuer of tokens can't be used: {failure}"
        )
        yield failed("issuer.metadata", message, _ADVICE)
        return

    message = Text("可以取得签发者的公钥。", "The issuer's keys can be had.")
    yield passed("issuer.metadata", message)
    if callback is not None:
        yield _login_state(metadata, callback)


def _login_state(metadata: dict[str, Any], callback: str) -> CheckResult:
    try:
        address_in(metadata, "authorization_endpoint")
        address_in(metadata, "token_endpoint")
    except IssuerFailure as failure:
        message = Text(
            f"不能在签发者登录：{failure}", f"Nobody can sign in at the issuer: {failure}"
        )
        return failed("issuer.login", message, _ADVICE)

    methods = metadata.get("code_challenge_methods_supported")
    if isinstance(methods, list) and "S256" not in methods:
        return warned(
            "issuer.login",
            Text("签发者没有声明支持 PKCE（S256）。", "The issuer names no PKCE by S256."),
            Text("为该客户端启用 PKCE。", "Switch PKCE on for this client."),
        )

    return passed(
        "issuer.login",
        Text(
            f"可以登录；签发者处登记的回调地址应为 {callback}。",
            f"People can sign in; the issuer has to know the redirect address {callback}.",
        ),
    )
