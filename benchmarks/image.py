"""Makes Citu's container image without an engine, and runs it as one would.

    python -m benchmarks.image BASE [--work FOLDER]

BASE is a folder with what the Dockerfile begins from, made by `debootstrap --variant=minbase
bookworm BASE`. Needs Linux, root and the network. Each instruction is carried out in turn, in a
root of its own; then the command runs as the image's user, without rights, on a root file system
that can't be written, until `HEALTHCHECK` passes; SIGTERM has to end it.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
MOST_MB = 400
_START_S, _END_S = 240.0, 60.0
_INSIDE = "CITU_IMAGE_NAMESPACE"
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
# What pip and apt need to know of the machine's network, and no image keeps.
_OF_MACHINE = re.compile(r"PIP_(?:CERT|INDEX_URL|DEFAULT_TIMEOUT)|(?:https?|no)_proxy$", re.I)


@dataclass
class _Stage:
    """A stage of the Dockerfile while it is made.

    Attributes:
        environment: what ENV and ARG have set.
        last: the last of each instruction, such as CMD.
    """

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    last: dict[str, str] = field(default_factory=dict)

    def inside(self, path: str) -> Path:
        """Return where a path of the image is on this machine."""
        return self.root / str(PurePosixPath(self.folder) / path).lstrip("/")

    def filled(self, text: str) -> str:
        """Return the text with variables filled in."""
        return _VARIABLE.sub(lambda found: self._value(found[1] or found[2]), text)

    def _value(self, name: str) -> str:
        inherited = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return self.environment.get(name, inherited if name == "PATH" else "")


class _Making:
    """Carries out the Dockerfile's instructions."""

    def __init__(self, base: Path, work: Path, arguments: Mapping[str, str]) -> None:
        self._base = base
        self._work = work
        self._arguments = arguments
        self._stages: dict[str, _Stage] = {}
        self._stage: _Stage | None = None

    def make(self) -> _Stage:
        """Return the last stage."""
        text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
        for line in re.sub(r"\\\n\s*", "", text).splitlines():
            if line.strip():
                name, _, given = line.partition(" ")
                print(f"{line[:100]}", flush=True)
                self._instruction(name, given.strip())
        assert self._stage is not None
        return self._stage

    def _instruction(self, name: str, given: str) -> None:
        if name == "FROM":
            self._from(given)
            return
        stage = self._stage
        assert stage is not None, "FROM comes first"
        if name == "RUN":
            self._run(stage, given)
        elif name == "COPY":
            self._copy(stage, shlex.split(stage.filled(given)))
        elif name == "WORKDIR":
            stage.folder = given
            stage.inside("").mkdir(parents=True, exist_ok=True)
        elif name == "ARG":
            variable, _, default = given.partition("=")
            stage.environment[variable] = self._arguments.get(variable, default)
        elif name == "ENV":
            for one in shlex.split(given):
                variable, _, value = one.partition("=")
                stage.environment[variable] = stage.filled(value)
        stage.last[name] = given

    def _from(self, given: str) -> None:
        name = given.partition(" AS ")[2] or "final"
        root = self._work / name
        if root.exists():
            shutil.rmtree(root)
        subprocess.run(["cp", "-a", str(self._base), str(root)], check=True)
        _slim(root)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        self._stage = self._stages[name] = _Stage(root)

    def _run(self, stage: _Stage, command: str) -> None:
        words = ["chroot", str(stage.root), "/bin/sh", "-c", f"cd {stage.folder} && {command}"]
        with _mounted(stage.root) as of_machine:
            given = {name: value for name, value in stage.environment.items() if value}
            variables = {"PATH": stage.filled("$PATH"), **of_machine, **given}
            subprocess.run(words, env=variables, check=True, stdout=subprocess.DEVNULL)

    def _copy(self, stage: _Stage, words: list[str]) -> None:
        source, target = words[-2:]
        if words[0].startswith("--from="):
            origin = self._stages[words[0].removeprefix("--from=")].root
            place = stage.inside(target)
            place.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-a", f"{origin}{source}", str(place)], check=True)
        elif source == ".":
            for path in _context():
                place = stage.inside(f"{target}/{path}")
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, place)
        else:
            shutil.copy(ROOT / source, stage.inside(target))


def _context() -> Iterator[str]:
    """Yield the tracked files that .dockerignore lets through."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    kept = [line.removeprefix("!") for line in lines if line.startswith("!")]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    for path in listed.stdout.splitlines():
        if any(path == one or path.startswith(f"{one}/") for one in kept):
            yield path


_NOT_IN_SLIM = (
    "/usr/share/doc",
    "/usr/share/info",
    "/usr/share/linda",
    "/usr/share/lintian",
    "/usr/share/locale",
    "/usr/share/man",
)
_DEVICES = {"null": (1, 3), "zero": (1, 5), "random": (1, 8), "urandom": (1, 9)}
_CERTIFICATES = "tmp/certificates-of-this-machine.crt"


@contextmanager
def _mounted(root: Path) -> Iterator[dict[str, str]]:
    """Give the root processes and devices of its own, and what pip has to know of the machine's
    network: the variables for it.
    """
    variables = {name: value for name, value in os.environ.items() if _OF_MACHINE.match(name)}
    trusted = variables.get("PIP_CERT")
    if trusted:
        shutil.copy(trusted, root / _CERTIFICATES)
        variables["PIP_CERT"] = f"/{_CERTIFICATES}"
    _mount("proc", root / "proc")
    _mount("tmpfs", root / "dev")
    for name, (major, minor) in _DEVICES.items():
        os.mknod(root / "dev" / name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
        (root / "dev" / name).chmod(0o666)
    try:
        yield variables
    finally:
        subprocess.run(["umount", str(root / "dev"), str(root / "proc")], check=True)
        (root / _CERTIFICATES).unlink(missing_ok=True)


def _mount(kind: str, place: Path) -> None:
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", kind, kind, str(place)], check=True)


def _slim(root: Path) -> None:
    """Leave out what debian:bookworm-slim leaves out, now and of packages that are installed."""
    excluded = [f"path-exclude {place}/*\n" for place in _NOT_IN_SLIM]
    (root / "etc/dpkg/dpkg.cfg.d/docker").write_text("".join(excluded))
    for place in (*_NOT_IN_SLIM, "/var/cache/apt/archives", "/var/lib/apt/lists"):
        shutil.rmtree(root / place.lstrip("/"), ignore_errors=True)
    for place in ("/var/cache/apt/archives/partial", "/var/lib/apt/lists/partial"):
        (root / place.lstrip("/")).mkdir(parents=True)
    kept_by_apt = 'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n'
    (root / "etc/apt/apt.conf.d/docker-clean").write_text(
        kept_by_apt + 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };\n'
    )
    for cache in (root / "var/cache/apt").glob("*.bin"):
        cache.unlink()


def size_mb(root: Path) -> float:
    """Return the megabytes of all files of the root, as an image has them."""
    found = subprocess.run(
        ["du", "-sx", "--apparent-size", "-B1", str(root)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(found.stdout.split()[0]) / 1e6


# ------------------------------------------------------------------------------
# running it

# In a namespace of mounts of its own, so that nothing stays mounted.
_CONTAINER = """
set -e
mount --bind "$ROOT" "$ROOT"
mount -t proc proc "$ROOT/proc"
mount -t tmpfs -o mode=755 tmpfs "$ROOT/dev"
mkdir "$ROOT/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/dev/shm"
mknod -m 666 "$ROOT/dev/null" c 1 3
mknod -m 666 "$ROOT/dev/zero" c 1 5
mknod -m 666 "$ROOT/dev/random" c 1 8
mknod -m 666 "$ROOT/dev/urandom" c 1 9
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/tmp"
mount --bind "$VOLUME" "$ROOT$VOLUME_PATH"
mount -o remount,bind,ro "$ROOT"
ip link set lo up
cd "$ROOT"
exec chroot --userspec="$USER_ID:$USER_ID" "$ROOT" /usr/bin/env -i "$@"
"""
_CHECKS = """
import os, sys, time, subprocess
for path in ("/opt/citu/x", "/etc/x", "/opt/venv/x"):
    try:
        open(path, "w")
        sys.exit(f"{path} can be written")
    except OSError:
        pass
command, health = sys.argv[1:3]
service = subprocess.Popen(["/bin/sh", "-c", f"exec {command}"])
started = time.monotonic()
while subprocess.call(["/bin/sh", "-c", health], stderr=subprocess.DEVNULL):
    if service.poll() is not None or time.monotonic() - started > 240:
        sys.exit("it does not answer")
    time.sleep(0.5)
print(f"healthy after {time.monotonic() - started:.1f} s as user {os.getuid()}", flush=True)
service.terminate()
stopped = time.monotonic()
code = service.wait(60)
print(f"ended by SIGTERM after {time.monotonic() - stopped:.1f} s, exit code {code}", flush=True)
"""


def run_image(stage: _Stage, work: Path) -> None:
    """Run the image's command as its user, with keys made by its own command."""
    user = int(stage.last["USER"])
    volume = work / "volume"
    shutil.rmtree(volume, ignore_errors=True)
    volume.mkdir(mode=0o750)
    os.chown(volume, user, user)
    health = json.loads(stage.last["HEALTHCHECK"].partition("CMD ")[2])
    command = json.loads(stage.last["CMD"])
    data = json.loads(stage.last["VOLUME"])[0]
    _contained(stage, volume, data, [*shlex.split("python -m api.keys create --user alice")])
    checked = ["python", "-c", _CHECKS, shlex.join(command), shlex.join(health)]
    _contained(stage, volume, data, checked)


def _contained(stage: _Stage, volume: Path, data: str, command: Sequence[str]) -> None:
    variables = [f"{name}={value}" for name, value in stage.environment.items()]
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
    inside = ["/bin/sh", "-c", f"cd {stage.folder} && exec {shlex.join(command)}"]
    confined = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    about = {
        "ROOT": str(stage.root),
        "VOLUME": str(volume),
        "VOLUME_PATH": data,
        "USER_ID": stage.last["USER"],
        "PATH": os.environ["PATH"],
    }
    subprocess.run(
        [*words, "sh", "-c", _CONTAINER, "sh", *variables, *confined, *inside],
        env=about,
        check=True,
        timeout=_START_S + _END_S,
    )


def main() -> None:
    """Make the image and run it, in a namespace of mounts of its own, which ends with it."""
    if os.environ.get(_INSIDE) is None:
        words = ["unshare", "--mount", "--propagation", "private"]
        again = [sys.executable, "-m", "benchmarks.image", *sys.argv[1:]]
        sys.exit(subprocess.call([*words, *again], env={**os.environ, _INSIDE: "1"}))
    parser = argparse.ArgumentParser(description="Make and run the container image without Docker")
    parser.add_argument("base", type=Path, help="made by debootstrap --variant=minbase bookworm")
    parser.add_argument("--work", type=Path, help="folder for the roots (default: a new one)")
    parser.add_argument("--build-arg", action="append", default=[], help="NAME=VALUE")
    options = parser.parse_args()
    arguments = dict(one.partition("=")[::2] for one in options.build_arg)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="citu-image-") as folder:
        work = options.work or Path(folder)
        work.mkdir(exist_ok=True)
        stage = _Making(options.base.resolve(), work.resolve(), arguments).make()
        megabytes = size_mb(stage.root)
        system, packages = size_mb(stage.root / "usr"), size_mb(stage.root / "opt/venv")
        citu = size_mb(stage.root / "opt/citu")
        print(
            f"{megabytes:.0f} MB (bar {MOST_MB}): the system {megabytes - packages - citu:.0f}"
            f" (its /usr {system:.0f}), packages {packages:.0f}, Citu {citu:.0f};"
            f" made in {time.monotonic() - started:.0f} s"
        )
        run_image(stage, work.resolve())
        if megabytes > MOST_MB:
            sys.exit("The image is too large.")


if __name__ == "__main__":
    main()
