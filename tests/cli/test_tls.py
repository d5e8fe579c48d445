# SPDX-License-Identifier: Apache-2.0
"""A remote lodged over https."""
import os

import pytest
from client import certificate
from lodge import Daemon


class TlsDaemon(Daemon):
    """The commands use https; the client of the tests uses the socket."""

    def env(self, **more):
        base = super().env(SSL_CERT_FILE=self.settings["tls_cert"], **more)
        return dict(base, LODGE_URL=f"https://localhost:{self.port}")


@pytest.fixture(scope="module")
def lodged(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tls")
    cert, key = certificate(directory, "one")
    d = TlsDaemon(tls_cert=cert, tls_key=key)
    d.other = certificate(directory, "other")[0]
    try:
        yield d
    finally:
        d.close()


@pytest.fixture
def key(lodged):
    assert lodged.lodge("enter", "-q", "box", "--", "true")[0] == 0
    return "box"


def test_exec_copies_bytes_both_ways(lodged, key):
    data = os.urandom(3000000)
    assert lodged.lodge("exec", key, "cat", data=data) == (0, data, "")


def test_a_terminal_takes_input(lodged, key):
    """Input is sent even while no output arrives."""
    status, out, said = lodged.lodge("enter", "-q", key, data=b"echo on $((40 + 2))\nexit 7\n")
    assert status == 7 and b"on 42" in out, said
    text = b"x" * 1000 + b"\n"
    status, out, said = lodged.lodge("enter", key, "--", "sh", "-c", "stty -echo; echo go; head -c 200200 | md5sum",
                                     data=text * 200)
    assert status == 0, said


def test_an_unknown_certificate_is_refused(lodged, key):
    status, _, said = lodged.lodge("ps", key, env=lodged.env() | {"SSL_CERT_FILE": lodged.other})
    assert status in (1, 125) and "certificate" in said
