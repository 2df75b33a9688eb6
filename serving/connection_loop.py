"""Waits for all connections in one thread, so that a slow client holds none of the pool's.

The thread reads heads and bodies as they come (`request_reading`), has whole requests served by the
pool, sends what clients did not take at once (`answer_sending`), and drops those that are too slow.
"""

import errno
import logging
import selectors
import socket
import ssl
import sys
import time
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from typing import Any

from gunicorn.http import wsgi
from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import ThreadWorker
from werkzeug.datastructures import Headers

from agent.extensions.points import RequestHead
from api.access.screening import SCREENED
from serving.answer_sending import OutgoingResponse, send_some
from serving.connection_limits import ConnectionLimits
from serving.connections import ClientConnection, Stage
from serving.deadlines import Deadlines
from serving.early_refusals import answer_to, too_many_connections, too_slow
from serving.request_reading import LargeBodies

_log = logging.getLogger(__name__)

# Seconds to wait for the client to close its end of a connection that is being closed.
LINGER_S = 1.0
# Threads for what a head alone decides: refusals, files, and that the process is alive. So few that
# callers need not wait for the interpreter while strangers ask without end.
_HEAD_THREADS = 2
_MOMENT_S = 0.1  # seconds to wait for a body before the head is judged without it
_STOP_IDLE_S = 2.0  # seconds an idle connection may still bring a request while the worker stops
_MOST_REFUSED = 256  # connections beyond an address's share that are closed with care
# The kernel would keep megabytes for every client that reads slowly.
_SEND_BUFFER_BYTES = 262_144
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_BEFORE_BODY = frozenset({Stage.IDLE, Stage.HEAD})
_RECEIVING = frozenset({*_BEFORE_BODY, Stage.BODY_SOON, Stage.BODY})


class ConnectionLoop(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Gunicorn's threaded worker, whose pool gets whole requests only.

    Attributes:
        head_s: seconds a request's head may take from its first byte on.
        body_s: seconds its body may take, and as many more as its size asks at `body_rate`.
        body_rate: bytes per second.
        stall_s: seconds without a byte taken after which a client is dropped.
        margin_s: seconds a request may take beyond `question_s`, for clients that read slowly.
        question_s: seconds one question may take.
        unsent_bytes: most memory that answers may hold which clients have not taken.
        connections_per_address: most for one address; 0: half of all.
        trusted_proxies: see `ConnectionLimits`.
        hurries: connections that bring no whole request are closed at once.
        is_draining: requests are answered, the last one of each connection.
        is_replaced: other workers take the connections that come.
        body_bytes: longest body that the application reads.
        large_bodies: requests whose bodies may be longer.
        knows: tells by a request's headers whether its caller is known to the application.
        screening: sets `SCREENED` in a WSGI environment; None: no head decides anything.
    """

    head_s = 5.0
    body_s = 10.0
    body_rate = 65536
    stall_s = 15.0
    margin_s = 60.0
    question_s = float("inf")
    unsent_bytes = 32 * 1024 * 1024
    connections_per_address = 0
    trusted_proxies = 0
    hurries = False
    is_draining = False
    is_replaced = False
    body_bytes = sys.maxsize
    large_bodies: LargeBodies | None = None
    knows: Callable[[RequestHead], bool] | None = None
    screening: Callable[[dict[str, Any], Any], Any] | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadlines: Deadlines[ClientConnection] = Deadlines()
        self._open: set[ClientConnection] = set()
        self._idle: dict[ClientConnection, None] = {}  # the one that has been idle longest first
        self._sending: dict[ClientConnection, None] = {}  # the same of those that take their answer
        self._busy = 0  # threads of the pool that serve a request, or will
        self._refused = 0  # connections that were one too many and are being closed

    def init_process(self) -> None:
        """Called once in the worker process."""
        self._head_pool = futures.ThreadPoolExecutor(_HEAD_THREADS, "head")
        super().init_process()

    def run(self) -> None:
        """Serve until the worker is told to stop and its requests are answered."""
        most = self.connections_per_address or self.worker_connections // 2
        self._limits = ConnectionLimits(most, self.trusted_proxies)
        super().run()
        self._head_pool.shutdown(wait=False)

    # ------------------------------------------------------------------------------
    # connections that come

    def set_accept_enabled(self, enabled: bool) -> None:
        """Called by gunicorn all the time, to wait for connections or to leave them to others."""
        super().set_accept_enabled(enabled and not self.is_replaced)

    def accept(self, listener: socket.socket) -> None:
        """Called when a client wants to connect."""
        try:
            accepted, client = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._drop_longest_idle()
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                raise

            return

        self.nr_conns += 1
        conn = ClientConnection(self.cfg, accepted, client, listener.getsockname())
        self._open.add(conn)
        self._guard(conn, self._begin)

    def _begin(self, conn: ClientConnection) -> None:
        _configure(conn.sock, self.stall_s)
        try:
            conn.open(self.body_bytes, self.stall_s, self.large_bodies)
        except OSError:  # TLS finds the client gone already
            self._close(conn)
            return

        peer = self._limits.peer(conn.client)
        if not self._limits.enter(peer):
            self._refuse_connection(conn)
            return

        conn.peer = peer
        if self.nr_conns >= self.worker_connections - 1:
            self._drop_longest_idle()

        self._rest(conn)

    def _refuse_connection(self, conn: ClientConnection) -> None:
        self._say(conn, too_many_connections())
        if self._refused >= _MOST_REFUSED:
            self._close(conn)
            return

        self._refused += 1
        conn.is_refused = True
        self._end(conn)

    def _drop_longest_idle(self) -> None:
        longest = next(iter(self._idle), None)
        if longest is not None:
            self._close(longest)

    # ------------------------------------------------------------------------------
    # requests that come

    def _rest(self, conn: ClientConnection) -> None:
        """Wait for a request, of which something may have come already."""
        self._begin_idle(conn)
        if conn.parser.is_empty:
            self._receive(conn)
        else:
            self._advance(conn)

    def _begin_idle(self, conn: ClientConnection) -> None:
        conn.stage = Stage.IDLE
        patience = self.cfg.keepalive
        if self.is_draining or not self.alive:
            patience = min(patience, _STOP_IDLE_S)

        self._deadlines.set(conn, time.monotonic() + patience)
        self._idle[conn] = None

    def _begin_head(self, conn: ClientConnection) -> None:
        self._leave_idle(conn, Stage.HEAD)
        self._deadlines.set(conn, time.monotonic() + self.head_s)

    def _receive(self, conn: ClientConnection) -> None:
        """Called when a connection has something to read, unless its request is being served."""
        try:
            data = conn.receive()
        except BlockingIOError:
            self._watch(conn, selectors.EVENT_READ, self._receive)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            self._time_handshake(conn)
            wants_read = isinstance(error, ssl.SSLWantReadError)
            event = selectors.EVENT_READ if wants_read else selectors.EVENT_WRITE
            self._watch(conn, event, self._receive)
        except OSError:
            self._close(conn)
        else:
            conn.parser.feed(data)
            self._advance(conn)

    def _time_handshake(self, conn: ClientConnection) -> None:
        """Give the handshake of TLS the time that a head may take; an idle connection follows."""
        if conn.is_shaking_hands:
            if conn.stage is Stage.IDLE:
                self._begin_head(conn)
        elif conn.stage is Stage.HEAD and conn.parser.is_empty:
            self._begin_idle(conn)

    def _advance(self, conn: ClientConnection) -> None:
        """Go on with what has been received."""
        if conn.stage in _BEFORE_BODY and not self._take_head(conn):
            return
        if conn.parser.has_body() or self._finds_body(conn):
            self._serve(conn)
            return

        self._watch(conn, selectors.EVENT_READ, self._receive)
        if conn.stage is Stage.BODY:
            self._deadlines.set(conn, self._body_deadline(conn))

    def _finds_body(self, conn: ClientConnection) -> bool:
        """Look once more without waiting: most bodies come while their head is being read."""
        try:
            conn.parser.feed(conn.receive())
        except OSError:  # nothing has come, or the poller will say what is wrong
            return False

        return bool(conn.parser.has_body())

    def _take_head(self, conn: ClientConnection) -> bool:
        """Read the head if all of it has come; return whether the body is next."""
        reader = conn.parser
        if not reader.has_head():
            if reader.is_ended:
                self._close(conn)
                return False

            if conn.stage is Stage.IDLE and not reader.is_empty:
                self._begin_head(conn)

            self._watch(conn, selectors.EVENT_READ, self._receive)
            return False

        self._leave_idle(conn, Stage.BODY_SOON)
        try:
            request = reader.read_head()
        except ParseException as error:
            self._unwatch(conn)
            self.handle_error(None, conn.sock, conn.client, error)
            self._end(conn)
            return False

        return self._admit_caller(conn, request) and self._expect_body(conn, request)

    def _leave_idle(self, conn: ClientConnection, stage: Stage) -> None:
        self._idle.pop(conn, None)
        conn.stage = stage

    def _admit_caller(self, conn: ClientConnection, request: Any) -> bool:
        """Count the request for the client that a proxy names; false: it was refused."""
        caller = self._limits.client(request.headers)
        if not self._limits.enter(caller):
            self._unwatch(conn)
            self._say(conn, too_many_connections())
            self._end(conn)
            return False

        conn.caller = caller
        return True

    def _expect_body(self, conn: ClientConnection, request: Any) -> bool:
        """Wait a moment for the body, whose language refusals are made in; false: nobody waits."""
        conn.head_at = time.monotonic()
        self._deadlines.set(conn, conn.head_at + _MOMENT_S)
        # Nothing is put on disk for somebody who will be refused.
        is_judged = request._expected_100_continue or conn.parser.is_large
        if is_judged and (conn.parser.is_large or not conn.parser.has_body()):
            self._judge_head(conn)
            return conn.stage is not Stage.SERVED

        return True

    def _judge_head(self, conn: ClientConnection) -> None:
        """Await the body of a request whose head is admitted; answer any other."""
        is_answered = self._is_answered_by_head(conn)
        expects_continue = conn.parser.mesg._expected_100_continue
        conn.parser.mesg._expected_100_continue = False  # gunicorn would send it with the answer
        if is_answered:
            self._serve_in(self._head_pool, conn)
            return

        conn.stage = Stage.BODY
        self._deadlines.set(conn, self._body_deadline(conn))
        if expects_continue:
            self._say(conn, _CONTINUE)

    def _is_answered_by_head(self, conn: ClientConnection) -> bool:
        """Tell whether the application needs only the head to answer or refuse the request."""
        if self.screening is None:
            return False

        request = conn.parser.mesg
        # Making the environment would send the client the 100 that it expects.
        expects, request._expected_100_continue = request._expected_100_continue, False
        try:
            _, environ = wsgi.create(request, conn.sock, conn.client, conn.server, self.cfg)
            self.screening(environ, None)
        except Exception:  # noqa: BLE001 - whatever it is, the application meets it again
            return False
        finally:
            request._expected_100_continue = expects

        return bool(environ[SCREENED])

    def _body_deadline(self, conn: ClientConnection) -> float:
        size = conn.parser.announced_bytes
        if not conn.parser.is_large:
            size = min(size, self.body_bytes)

        seconds: float = self.body_s + size / self.body_rate
        return conn.head_at + seconds

    # ------------------------------------------------------------------------------
    # requests that are served

    def _serve(self, conn: ClientConnection) -> None:
        """Have a thread of the pool serve a whole request.

        One of the few other threads serves it where the head decides and either the caller is
        unknown or the pool is busy.
        """
        is_first = self._busy < self.cfg.threads and self._is_known(conn)
        is_of_pool = is_first or not self._is_answered_by_head(conn)
        self._serve_in(self.tpool if is_of_pool else self._head_pool, conn)

    def _is_known(self, conn: ClientConnection) -> bool:
        if self.knows is None:
            return True

        peer = conn.client[0] if isinstance(conn.client, tuple) else ""
        return self.knows(RequestHead(Headers(conn.parser.mesg.headers), peer))

    def _serve_in(self, pool: futures.Executor, conn: ClientConnection) -> None:
        self._unwatch(conn)
        self._idle.pop(conn, None)
        conn.stage = Stage.SERVED
        conn.is_counted_busy = pool is self.tpool
        self._busy += conn.is_counted_busy
        conn.serve_until = time.monotonic() + self.question_s + self.margin_s
        self._deadlines.set(conn, conn.serve_until)
        served = pool.submit(self.handle, conn)
        served.add_done_callback(
            lambda done: self.method_queue.defer(self.finish_request, conn, done)
        )

    def handle_request(self, req: Any, conn: ClientConnection) -> bool:
        """Let the application answer; called in a thread.

        Returns whether the connection goes on.
        """
        self.cfg.pre_request(self, req)
        response, environ = wsgi.create(
            req,
            conn.sock,
            conn.client,
            conn.server,
            self.cfg,
            response_class=OutgoingResponse,
            response_args=(conn.outgoing,),
        )
        environ["wsgi.multithread"] = True
        if conn.parser.is_too_long:
            # The application refuses a body by its length; that of chunks is said nowhere.
            environ.pop("HTTP_TRANSFER_ENCODING", None)
            environ.setdefault("CONTENT_LENGTH", str(self.body_bytes + 1))

        self._count_request()
        if not self._may_keep(conn):
            response.force_close()

        try:
            self._answer(environ, response)
        except OSError:  # gunicorn logs it, unless the client has left
            raise
        except Exception:
            if not response.headers_sent:
                raise

            self.log.exception("Error handling request")
            raise StopIteration from None  # what was begun can't become an answer
        finally:
            self.cfg.post_request(self, req, environ, response)

        has_moved = response.status_code == HTTPStatus.SWITCHING_PROTOCOLS
        return not (has_moved or response.should_close())

    def _answer(self, environ: dict[str, Any], response: OutgoingResponse) -> None:
        started = datetime.now()
        body = self.wsgi(environ, response.start_response)
        try:
            if isinstance(body, environ["wsgi.file_wrapper"]):
                response.write_file(body)
            else:
                for part in body:
                    response.write(part)

            response.close()
        finally:
            self.log.access(response, response.req, environ, datetime.now() - started)
            if hasattr(body, "close"):
                body.close()

    def _count_request(self) -> None:
        self.nr += 1
        if self.nr >= self.max_requests:
            self.alive = False

    def _may_keep(self, conn: ClientConnection) -> bool:
        """Tell whether the connection may serve a next request; not with bytes of this one left."""
        has_room = len(self._idle) < self.max_keepalived
        goes_on = self.alive and not self.is_draining
        return bool(goes_on and self.cfg.keepalive and has_room and conn.parser.is_whole)

    def _keepalive_after(self, conn: ClientConnection, keepalive: bool) -> bool:
        """Called by gunicorn to read what the application has left of a body."""
        try:
            return bool(super()._keepalive_after(conn, keepalive))
        except ParseException:  # it was answered already
            return False

    def finish_request(self, conn: ClientConnection, served: "futures.Future[Any]") -> None:
        """Called in the worker's own thread when a thread has served the request."""
        self._busy -= conn.is_counted_busy
        failed = served.cancelled() or served.exception() is not None
        conn.goes_on = not failed and bool(served.result())
        self._guard(conn, self._finish)

    def _finish(self, conn: ClientConnection) -> None:
        if not conn.outgoing.held_bytes:
            self._answered(conn)
            return

        conn.stage = Stage.SENDING
        self._sending[conn] = None
        self._send(conn)
        self._keep_unsent_small()

    def _send(self, conn: ClientConnection) -> None:
        """Called when a client takes more of its answer."""
        try:
            is_taken = conn.outgoing.flush()
        except OSError as error:
            if isinstance(error, TimeoutError):  # the kernel was the first to give up
                _log.info("a client took or sent nothing for too long and was dropped")

            self._close(conn)
            return

        if is_taken:
            self._answered(conn)
            return

        self._deadlines.set(conn, min(time.monotonic() + self.stall_s, conn.serve_until))
        self._watch(conn, selectors.EVENT_WRITE, self._send)

    def _keep_unsent_small(self) -> None:
        """Drop clients that have taken longest, while all together leave too much waiting."""
        unsent = sum(conn.outgoing.held_bytes for conn in self._sending)
        for conn in tuple(self._sending):
            if unsent <= self.unsent_bytes:
                return

            unsent -= conn.outgoing.held_bytes
            _log.info("a client took too little for too long and was dropped")
            self._close(conn)

    def _answered(self, conn: ClientConnection) -> None:
        """Go on after an answer: to the next request, or to the connection's end."""
        self._sending.pop(conn, None)
        self._limits.leave(conn.caller)
        conn.caller = ""
        self._unwatch(conn)
        conn.parser.begin_next()
        if conn.goes_on and not (conn.parser.is_ended and conn.parser.is_empty):
            self._rest(conn)
        else:
            self._end(conn)

    def handle_error(self, _req: Any, client: Any, _addr: Any, exc: BaseException) -> None:
        """Answer what can't be served, in the service's envelope."""
        if isinstance(exc, ssl.SSLError):
            return
        if isinstance(exc, ParseException):
            _log.info("a client sent no valid request: %s", type(exc).__name__)
        else:
            self.log.exception("Error handling request")

        with suppress(OSError):  # the client has left
            send_some(client, answer_to(exc))

    # ------------------------------------------------------------------------------
    # connections that end

    def _say(self, conn: ClientConnection, response: bytes) -> None:
        """Send a few bytes that nobody waits for."""
        with suppress(OSError):  # the client has left
            send_some(conn.sock, response)

    def _end(self, conn: ClientConnection) -> None:
        """Close the sending end, then wait for the client to close its own.

        Closing both at once could cut the answer off.
        """
        conn.stage = Stage.CLOSING
        self._idle.pop(conn, None)
        self._limits.leave(conn.caller)
        conn.caller = ""
        self._deadlines.set(conn, time.monotonic() + LINGER_S)
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(conn)
            return

        self._watch(conn, selectors.EVENT_READ, self._discard)

    def _discard(self, conn: ClientConnection) -> None:
        """Called when a client goes on sending although its connection is being closed."""
        try:
            if conn.receive():
                return
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except OSError:
            pass

        self._close(conn)

    def _close(self, conn: ClientConnection) -> None:
        if conn not in self._open:
            return

        self._open.remove(conn)
        self._unwatch(conn)
        self._deadlines.clear(conn)
        self._idle.pop(conn, None)
        self._sending.pop(conn, None)
        self._limits.leave(conn.caller)
        self._limits.leave(conn.peer)
        conn.caller = conn.peer = ""
        self._refused -= conn.is_refused
        self.nr_conns -= 1
        conn.parser.close_stored()
        conn.close()

    # ------------------------------------------------------------------------------
    # what is waited for

    def _watch(
        self, conn: ClientConnection, event: int, do: Callable[[ClientConnection], None]
    ) -> None:
        """Call `do` whenever the event happens on the connection's socket."""
        if conn.watched == (event, do):
            return

        self._unwatch(conn)
        self.poller.register(conn.sock, event, lambda _sock: self._notice(conn, event, do))
        conn.watched = (event, do)

    def _notice(
        self, conn: ClientConnection, event: int, do: Callable[[ClientConnection], None]
    ) -> None:
        if conn.watched != (event, do):  # it has moved on since the poller saw the event
            return

        self._guard(conn, do)

    def _guard(self, conn: ClientConnection, do: Callable[[ClientConnection], None]) -> None:
        """Do it; a failure ends this connection and no other."""
        try:
            do(conn)
        except Exception:
            self.log.exception("Error handling connection")
            self._close(conn)

    def _unwatch(self, conn: ClientConnection) -> None:
        if conn.watched is not None:
            self.poller.unregister(conn.sock)
            conn.watched = None

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait for `timeout` seconds at most, and no longer than to the next deadline."""
        until_next = max(0.0, self._deadlines.next_at() - time.monotonic())
        super().wait_for_and_dispatch_events(min(timeout, until_next))
        for conn in self._deadlines.passed(time.monotonic()):
            self._guard(conn, self._give_up)

    def _give_up(self, conn: ClientConnection) -> None:
        """Do what a connection's deadline asks for."""
        if conn.stage is Stage.BODY_SOON:
            self._judge_head(conn)
        elif conn.stage in (Stage.HEAD, Stage.BODY):
            _log.info("a client sent its request too slowly and was dropped")
            self._unwatch(conn)
            self._say(conn, too_slow())
            self._end(conn)
        elif conn.stage is Stage.SERVED:
            # It never stalls, but takes or sends so little that it would hold a thread for ever.
            _log.info("a client took or sent too little for too long and was dropped")
            with suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RDWR)
        else:
            if conn.stage is Stage.SENDING:
                _log.info("a client took or sent nothing for too long and was dropped")

            self._close(conn)

    def begin_draining(self) -> None:
        """End idle connections soon, and take no more if others do; call it while draining."""
        self.set_accept_enabled(not self.is_replaced)
        self._cap_keepalive(time.monotonic() + _STOP_IDLE_S)

    @property
    def serves_requests(self) -> bool:
        """Tell whether threads of the pool serve requests, or will."""
        return self._busy > 0

    def _cap_keepalive(self, deadline: float) -> None:
        """Called by gunicorn when it begins to stop: idle connections end by `deadline`."""
        for conn in self._idle:
            self._deadlines.set(conn, deadline)

    def murder_keepalived(self, force: bool = False) -> None:
        """Called by gunicorn all the time; `force`: the worker ends."""
        if force or self.hurries:
            for conn in tuple(self._open):
                if conn.stage in _RECEIVING:
                    self._close(conn)


def _configure(connection: socket.socket, seconds: float) -> None:
    """Bound what the kernel keeps for a client, and for how long."""
    with suppress(OSError):  # the client has closed the connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        if hasattr(socket, "TCP_USER_TIMEOUT") and connection.family != socket.AF_UNIX:
            # Notices a client that vanished without closing: it does not acknowledge the next
            # bytes, such as a ping.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))
