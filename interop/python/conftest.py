"""Fixtures of all tests here. The Go test beside this file starts the server and runs pytest; see doc.go."""

import pytest

from server import HEADERS, TIMEOUT_S, URL


class Sync:
    """A client's .sync() face behind awaitable methods, so that one scenario serves both faces."""

    def __init__(self, client):
        self._sync = client.sync()

    async def __aenter__(self):
        self._sync.__enter__()
        return self

    async def __aexit__(self, *exception):
        self._sync.__exit__(*exception)

    def __getattr__(self, name):
        async def call(*args, **kwargs):
            return getattr(self._sync, name)(*args, **kwargs)

        return call


@pytest.fixture(params=["async", "sync"])
def client(request):
    """Makes a client of a class, in one of its two faces: the client itself, or what its .sync() returns."""

    def make(client_class):
        made = client_class(base_url=URL, headers=HEADERS, message_timeout_s=TIMEOUT_S)
        return Sync(made) if request.param == "sync" else made

    return make


@pytest.fixture
def anyio_backend():
    """Tests marked with anyio, which are coroutines, run on asyncio, as the clients need."""
    return "asyncio"
