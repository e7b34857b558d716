"""Fixtures of all tests here. The Go test beside this file starts the server and runs pytest; see doc.go."""

import contextlib
import ssl

import pytest

from peers import PEERS
from server import Handle, Plain

# Each client would read all certificate authorities, which is a third of the time of all tests. Nothing here speaks TLS.
ssl.SSLContext.load_verify_locations = lambda *_, **__: None


@pytest.fixture
def anyio_backend():
    """Tests marked with anyio, which are coroutines, run on asyncio, as the clients need."""
    return "asyncio"


@pytest.fixture(params=PEERS, ids=lambda peer: peer.__name__)
def peer_class(request):
    return request.param


@pytest.fixture(params=[Plain, Handle], ids=lambda door: door.__name__)
def door(request):
    return request.param()


@pytest.fixture
def connect(peer_class, door):
    """Connects a client by a door, for as long as the context lasts; the client leaves at its end."""

    @contextlib.asynccontextmanager
    async def connected():
        # The door is made anew, so that one test may have many clients.
        async with type(door)(door.base).address() as url, peer_class(url).open() as peer:
            yield peer

    return connected
