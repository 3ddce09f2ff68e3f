"""The file of hosts: every key wrong is told in one sentence, and nothing is taken on trust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import keys
from diskbook.facts.errors import UsageError
from diskbook.hosts import hosts_file
from support.own_hosts import written


@pytest.fixture
def key(tmp_path: Path) -> str:
    (tmp_path / "id").write_text("private")
    return " ".join(keys.new_pair("host").public.split()[:2])


def over_ssh(key: str, **changes: Any) -> dict[str, Any]:
    whole = {
        "name": "disks",
        "address": "192.0.2.1",
        "user": "me",
        "identity_file": "id",
        "host_key": key,
        "paths": ["/data"],
    }
    return {name: value for name, value in {**whole, **changes}.items() if value is not None}


def test_a_whole_file_is_read(tmp_path: Path, key: str) -> None:
    here = {"name": "here", "folder": "/var/tmp", "devices": [{"path": "/dev/sdx", "allow_destroy": True}]}
    named = over_ssh(f"{key} root@disks", role="vm1", port=2222, paths=[{"path": "/data/", "disk": "lrs"}])
    one, two = hosts_file.read(written(tmp_path, here, named))
    assert (one.machine, one.address, one.devices[0].allow_destroy) == ("here", None, True)
    assert (two.machine, two.port, two.host_key, two.paths[0].path) == ("vm1", 2222, key, "/data")
    assert two.identity_file == str(tmp_path / "id")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"nme": "x"}, "there is no key 'nme'; did you mean 'name'"),
        ({"name": None}, "the key 'name' is missing"),
        ({"name": "A B"}, "'A B' is not a name; use small letters"),
        ({"address": "a b"}, "address = 'a b' cannot be one"),
        ({"port": 0}, "port: input should be greater than or equal to 1"),
        ({"port": "22"}, "port: input should be a valid integer"),
        ({"user": None}, "the key 'user' is missing, which an address needs"),
        ({"user": "a b"}, "user = 'a b' cannot be one"),
        ({"identity_file": None}, "the key 'identity_file' is missing"),
        ({"identity_file": "nowhere"}, "there is no identity_file nowhere; name the private key"),
        (
            {"host_key": None},
            "'host_key' is missing, which an address needs: on the host itself 'cat /etc",
        ),
        ({"host_key": "ssh-ed25519"}, 'not a line of a public host key; write for example "ssh-ed25519 AAAA'),
        ({"host_key": "SHA256:abc"}, "not a line of a public host key"),
        ({"host_key": "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIA=="}, "not a line of a public host key"),
        ({"os": "windows"}, "hosts of your own run Linux, with fio"),
        ({"role": "9"}, "role = '9' cannot be one"),
        ({"folder": "work"}, "folder: 'work' is relative; write the whole path"),
        ({"paths": ["data"]}, "'data' is relative; write the whole path, from / on"),
        ({"paths": ["~/data"]}, "'~/data' is relative"),
        ({"paths": ["/a/../b"]}, "has . or .. or // in it; write /b"),
        ({"paths": ["/a\u202eb"]}, "write a path in one line"),
        ({"paths": []}, "it names nothing to measure; give paths or devices"),
        ({"paths": [{"path": "/a", "disc": "b"}]}, "there is no key 'disc'; did you mean 'disk'"),
        ({"paths": [{"path": "/a", "allow_destroy": True}]}, "there is no key 'allow_destroy'"),
        (
            {"paths": None, "devices": [{"path": "/dev/x", "allow_destroy": "yes"}]},
            "allow_destroy: input should",
        ),
        ({"paths": None, "devices": ["sda"]}, "'sda' is relative"),
        ({"password": "x"}, "there is no key 'password'"),
    ],
)
def test_every_key_that_is_wrong_is_told(
    tmp_path: Path, key: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError) as refused:
        hosts_file.read(written(tmp_path, over_ssh(key, **changes)))
    text = str(refused.value)
    assert sentence in text and text.startswith("hosts.toml: ") and "\n" not in text


def test_what_goes_with_ssh_needs_an_address(tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match="user goes with an address; without one it is this machine"):
        hosts_file.read(written(tmp_path, over_ssh(key, address=None)))


def test_two_hosts_of_one_name_or_role_are_refused(tmp_path: Path) -> None:
    a, b = {"name": "a", "paths": ["/a"]}, {"name": "b", "role": "a", "paths": ["/b"]}
    with pytest.raises(UsageError, match="two hosts have the name 'a'; names must differ"):
        hosts_file.read(written(tmp_path, a, a))
    with pytest.raises(UsageError, match="two hosts have the role 'a'; roles must differ"):
        hosts_file.read(written(tmp_path, a, b))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", "write one \\[\\[host\\]\\] for each host"), ("host = []", "at least one \\[\\[host\\]\\]"),
     ("[host]\nname = 'a'", "host"), ("[[host", "not valid TOML"), ("\xff", "not valid TOML"),
     ("[[hosts]]", "did you mean 'host'")],
)  # fmt: skip
def test_a_file_that_is_none_is_told(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "hosts.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=sentence):
        hosts_file.read(path)
    with pytest.raises(UsageError, match="there is no file of hosts"):
        hosts_file.read(tmp_path / "absent.toml")
    with pytest.raises(UsageError, match="this cannot be read"):
        hosts_file.read(tmp_path)
