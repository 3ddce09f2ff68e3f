"""Decide which addresses may reach the machines by SSH: the caller's own, never everyone."""

import ipaddress
import os

from diskbook.facts.errors import UsageError

VARIABLE = "DISKBOOK_SSH_SOURCE"
_WIDEST = 16  # bits: what one organisation has; wider is as good as everyone
_EXAMPLE = 'for example "203.0.113.7" (your address as others see it)'
_OPEN = f"would open the machines to everyone; name your address, {_EXAMPLE}"

_NEVER_SEEN = {
    "a private network": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
    "the network within a provider": ("100.64.0.0/10",),
    "this machine itself": ("127.0.0.0/8", "0.0.0.0/8"),
    "one link": ("169.254.0.0/16",),
    "no single machine": ("224.0.0.0/4", "240.0.0.0/4"),
}


def find(given: str | None = None) -> str:
    """Return the addresses to let in, as a CIDR: from the parameter, or else from the environment.

    Raises UsageError when none is named, or it would admit everyone or nobody.
    """
    named = os.environ.get(VARIABLE, "").strip()
    for text, where in ((given, "--ssh-source"), (named, VARIABLE)):
        if text:
            return cidr(text, where)
    raise UsageError(
        f"say from where the machines may be reached by SSH, with --ssh-source or {VARIABLE}, {_EXAMPLE}; "
        "otherwise they would be open to everyone"
    )


def cidr(text: str, where: str = VARIABLE) -> str:
    """Check one address or network, and return it as a CIDR; a bare address becomes /32.

    Raises UsageError when it is none, is IPv6, or would admit everyone or nobody.
    """
    if text.strip().lower() in ("*", "any", "internet"):
        raise UsageError(
            f"{where}: '{text}' would open the machines to everyone; name your address, {_EXAMPLE}"
        )
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise UsageError(f"{where}: '{text}' is neither an address nor a network; write {_EXAMPLE}") from None
    if network.version != 4:
        raise UsageError(
            f"{where}: {network} is IPv6, and the machines have IPv4 addresses only, so nobody could get in; "
            f"name your IPv4 address, {_EXAMPLE}"
        )
    if network.prefixlen < _WIDEST:
        raise UsageError(
            f"{where}: {network} would open the machines to everyone; name your address, {_EXAMPLE}"
        )
    for what, ranges in _NEVER_SEEN.items():
        if any(network.network_address in ipaddress.ip_network(known) for known in ranges):
            raise UsageError(
                f"{where}: {network} belongs to {what} and is never what Azure sees, so nobody could get in; "
                f"name your public address, {_EXAMPLE}"
            )
    return str(network)
