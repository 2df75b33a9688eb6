"""Checks the address by which clients reach the service: encryption, and the certificate of the
proxy in front.
"""

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from http.client import HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, urlsplit

from common.check_report import CheckResult, failed, passed, warned
from common.loopback import is_loopback
from common.text import Text
from serving.doctor.machine_checks import citu_answers

_WAIT_S = 5.0
_SOON_DAYS = 14
_DAY_S = 86_400
_ENCRYPTION = "address.encryption"
_CERTIFICATE = "address.certificate"
_PROXY = "address.proxy"
_START_PROXY = Text(
    "检查 PUBLIC_URL、DNS 和反向代理（docs/deployment.md）。",
    "Check PUBLIC_URL, the name's address and the proxy (docs/deployment.md).",
)
_RENEW = Text("更新反向代理的证书。", "Have the proxy's certificate renewed.")


def public_address(url: str) -> Iterator[CheckResult]:
    """Find what is wrong with the address that clients know.

    Args:
        url: PUBLIC_URL; empty: nobody has said it, and nothing is looked at.
    """
    if not url:
        return

    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        yield from _certificate(parts)
    elif host != "localhost" and not is_loopback(host):
        message = Text(
            "PUBLIC_URL 是 http://：密钥和答案未加密传输。",
            "PUBLIC_URL is http://: keys and answers can be read on the way.",
        )
        advice = Text(
            "在反向代理上启用 TLS，并把 PUBLIC_URL 改为 https://。",
            "Let the proxy speak TLS, and set PUBLIC_URL to https://.",
        )
        yield failed(_ENCRYPTION, message, advice)


def _certificate(parts: SplitResult) -> Iterator[CheckResult]:
    """Look at the certificate as a client does, and at what answers behind it."""
    connection = HTTPSConnection(
        parts.hostname or "",
        parts.port,
        timeout=_WAIT_S,
        context=ssl.create_default_context(),
    )
    with closing(connection):
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            yield _not_trusted(error)
            return
        except OSError as error:
            yield _unreachable(error)
            return

        certificate = connection.sock.getpeercert()
        assert isinstance(certificate, dict)  # it has been verified
        yield _validity(certificate)
        yield _answer(connection, parts.path.rstrip("/"))


def _not_trusted(error: ssl.SSLCertVerificationError) -> CheckResult:
    reason = error.verify_message or "TLS"
    message = Text(
        f"客户端不会信任 PUBLIC_URL 的证书：{reason}。",
        f"Clients won't trust the certificate at PUBLIC_URL: {reason}.",
    )
    return failed(_CERTIFICATE, message, _RENEW)


def _unreachable(error: OSError) -> CheckResult:
    reason = error.strerror or type(error).__name__
    message = Text(f"无法连接 PUBLIC_URL：{reason}。", f"PUBLIC_URL can't be reached: {reason}.")
    return warned(_PROXY, message, _START_PROXY)


def _validity(certificate: Mapping[str, Any]) -> CheckResult:
    ends = ssl.cert_time_to_seconds(certificate["notAfter"])
    days = int((ends - time.time()) // _DAY_S)
    message = Text(f"证书还有 {days} 天到期。", f"The certificate is valid for {days} more days.")
    if days < _SOON_DAYS:
        return warned(_CERTIFICATE, message, _RENEW)

    return passed(_CERTIFICATE, message)


def _answer(connection: HTTPSConnection, path: str) -> CheckResult:
    if citu_answers(connection, path):
        message = Text("Citu 在 PUBLIC_URL 上回答。", "Citu answers at PUBLIC_URL.")
        return passed(_PROXY, message)

    message = Text(
        "PUBLIC_URL 后面没有 Citu 回答；服务还没有启动时是正常的。",
        "Citu does not answer behind PUBLIC_URL, as it should once the service runs.",
    )
    return warned(_PROXY, message, _START_PROXY)
