"""Clear errors for a proxy that an HTTP client cannot use, and a server it cannot trust."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from ragaliq.errors import ConfigurationError

_VARIABLES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
_USABLE = ("http", "https")


@contextmanager
def proxy_errors() -> Iterator[None]:
    """Turn a proxy error of an HTTP client built inside into a `ConfigurationError`.

    Raises:
        ConfigurationError: A proxy has a scheme that the client does not know or that needs another
            package. The message names the variable but not its value, which may hold a password.
    """
    problem = ""
    try:
        yield
    except (ImportError, ValueError) as error:
        problem = _problem()
        if not problem:
            raise
        del error
    if problem:
        raise ConfigurationError(problem)


def _problem() -> str:
    for name in (each for variable in _VARIABLES for each in (variable, variable.lower())):
        scheme, _, rest = os.environ.get(name, "").partition("://")
        if not rest or scheme in _USABLE:
            continue
        todo = (
            "its support is not installed: pip install 'httpx2[socks]' 'httpx[socks]'"
            if scheme in ("socks5", "socks5h")
            else "write http://, https:// or socks5://"
        )
        return (
            f"the proxy in {name} cannot be used: {todo}. Or unset it for this process "
            "(a judge on this machine needs none)"
        )
    return ""


def untrusted_certificate(error: BaseException | None) -> str:
    """Clause that says why a server is not trusted; empty if that was not the error."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"has a certificate that is not trusted ({error.verify_message}); SSL_CERT_FILE "
                "may name a file with its authority's"
            )
        error = error.__cause__ or error.__context__
    return ""
