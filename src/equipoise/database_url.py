"""Addresses of databases: read before a driver sees them, shown without their passwords.

Drivers quote what they cannot read (``invalid percent-encoded token: "s3cr%zz3t"``), and that may
be a password. So an address that a driver could misread is refused here, in words that quote none
of it, and messages show an address only as :func:`display_url` writes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from equipoise.errors import InvalidInput

# A list of what is safe, not of what is secret: a parameter that a driver adds later stays hidden.
SAFE_PARAMETERS = frozenset(
    [
        "application_name",
        "charset",
        "connect_timeout",
        "dbname",
        "host",
        "hostaddr",
        "mode",
        "port",
        "service",
        "sslmode",
        "target_session_attrs",
        "uri",
        "user",
    ]
)
"""Parameters of an address whose values are shown; every other value may be a secret."""

_HIDDEN = "***"
_BAD_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")
_PORT = re.compile(r":\d*$")


@dataclass(frozen=True)
class _UrlParts:
    """The parts of ``scheme://user:password@hosts/path?parameters``, still percent-encoded."""

    scheme: str
    user: str
    password: str | None
    hosts: str
    path: str
    parameters: tuple[tuple[str, str], ...]


def check_database_url(url: str) -> None:
    """Refuse an address whose user, password, host or port could be taken for one another.

    Parameters
    ----------
    url
        An address such as ``postgresql://anna:secret@db.example/audits``. What has no ``://`` is a
        file name and is accepted as it is.

    Raises
    ------
    InvalidInput
        If a special character in the user's name or the password is not written as ``%XX``, or if
        a port is not a number. The message quotes nothing of the address.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return
    authority = _authority_of(rest)
    if not authority:  # a path, or everything in parameters: nothing can be mistaken for a host
        return
    credentials, _, hosts = authority.rpartition("@")
    if "@" in credentials or "@" in rest[len(authority) :]:
        raise _unreadable(scheme, "it has '@' in more than one place, or after '/', '?' or '#'")
    if _BAD_PERCENT.search(credentials):
        raise _unreadable(scheme, "it has '%' without two hexadecimal digits after it")
    if any(character.isspace() for character in credentials):
        raise _unreadable(scheme, "it has a space before the host")
    if not all(_is_host(host) for host in hosts.split(",")):
        raise _unreadable(scheme, "what stands behind the host's ':' is not a port number")


def display_url(url: str) -> str:
    """Return an address without its password and without parameters that may be secret.

    Examples
    --------
    >>> display_url("postgresql://anna:secret@db/audits?password=secret&sslmode=require")
    'postgresql://anna:***@db/audits?password=***&sslmode=require'
    """
    if "://" not in url:
        return url
    try:
        check_database_url(url)
    except InvalidInput:  # nobody can say which part is the password
        return f"{url.partition('://')[0]}://{_HIDDEN}"
    parts = _split(url)
    text = f"{parts.scheme}://{parts.user}"
    if parts.password is not None:
        text += f":{_HIDDEN}" if parts.password else ":"
    if parts.user or parts.password is not None:
        text += "@"
    text += parts.hosts + parts.path
    shown_parameters = []
    for name, value in parts.parameters:
        is_safe = unquote(name).lower() in SAFE_PARAMETERS
        shown_parameters.append(f"{name}={value if is_safe else _HIDDEN}")
    return f"{text}?{'&'.join(shown_parameters)}" if shown_parameters else text


def display_path(path: str) -> str:
    """Return the path of a file; of what seems to be a mistyped address, no part.

    Examples
    --------
    >>> display_path("loans.csv")
    'loans.csv'
    >>> display_path("postgresql:/anna:secret@db/audits")
    '*** (an address of a database begins with, for example, postgresql://)'
    """
    # With one slash it is no address but a path, and would be shown with the password in it.
    if "@" not in path and "password" not in path.casefold():
        return path
    return f"{_HIDDEN} (an address of a database begins with, for example, postgresql://)"


def hide_secrets(message: str, url: str) -> str:
    """Return a driver's message without the password and the secret parameters of an address.

    Examples
    --------
    >>> hide_secrets("cannot log in with secret", "postgresql://anna:secret@db/audits")
    'cannot log in with ***'
    """
    if "://" not in url:
        return message
    parts = _split(url)
    secrets = [parts.password or ""]
    secrets += [v for name, v in parts.parameters if unquote(name).lower() not in SAFE_PARAMETERS]
    for secret in secrets:
        # A driver may quote a secret as it was written, or decoded.
        for spelling in (secret, unquote(secret)):
            if spelling:
                # Only as a word: the password "a" must not blacken every a of a message.
                whole_word = rf"(?<!\w){re.escape(spelling)}(?!\w)"
                message = re.sub(whole_word, _HIDDEN, message)
    return message


def _split(url: str) -> _UrlParts:
    """Return the parts of an address, which need not be a valid one."""
    scheme, _, rest = url.partition("://")
    authority = _authority_of(rest)
    # From the right: in an address that was not checked a password may hold "@".
    credentials, _, hosts = authority.rpartition("@")
    user, colon, password = credentials.partition(":")
    path, _, query = rest[len(authority) :].partition("?")
    return _UrlParts(
        scheme=scheme,
        user=user,
        password=password if colon else None,  # None without a colon; "" for an empty password
        hosts=hosts,
        path=path,
        parameters=_split_parameters(query),
    )


def _split_parameters(query: str) -> tuple[tuple[str, str], ...]:
    """Return names and values of ``name=value&name=value``; a name alone has the value ""."""
    parameters = []
    for parameter in query.split("&"):
        name, _, value = parameter.partition("=")
        if parameter:
            parameters.append((name, value))
    return tuple(parameters)


def _authority_of(rest: str) -> str:
    """Return what stands between ``://`` and the path."""
    return re.split(r"[/?#]", rest, maxsplit=1)[0]


def _is_host(text: str) -> bool:
    """Whether this is a host with a port number or without one; ``[::1]`` has colons of its own."""
    if text.startswith("["):
        name, bracket, port = text.partition("]")
        return bool(bracket) and ":" in name and (not port or _PORT.fullmatch(port) is not None)
    return ":" not in text or (text.count(":") == 1 and _PORT.search(text) is not None)


def _unreadable(scheme: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"the address {scheme}://… cannot be read: {reason}. Write special characters in the "
        "user's name and the password as %XX: @ is %40, : is %3A, / is %2F, ? is %3F, # is %23, "
        "% is %25 and a space is %20"
    )
