"""The scratch database of the tests."""

import uuid
from collections.abc import Iterator

import pytest

from databases.demo.loader import DemoServer
from databases.scratch_database import ensure_scratch_database
from tests.conftest import alone
from tests.support.databases import execute


@pytest.fixture(scope="session")
def scratch_url(embedded_server: DemoServer) -> Iterator[str]:
    """Yield a database that the scratch role owns."""
    name = f"citu_test_{uuid.uuid4().hex[:12]}"
    with alone():
        url = ensure_scratch_database(embedded_server, name)
    yield url
    execute(embedded_server.admin_url, f"DROP DATABASE {name} WITH (FORCE)")
