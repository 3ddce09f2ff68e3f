"""The emulated company's jump host: a real sshd, and the only one that reaches machines in its subnets.

Private addresses are loopback addresses at which nobody listens; sshd of the jump host connects where a file
of this emulator says instead (`jump.c`). What the user of a real one has already lies in its folder: an SSH
configuration with the host, a key that it lets in, and its host key among known hosts. Beside them is a
program `az` that opens tunnels as Azure Bastion does (`bastion_tunnel`).
"""

import ipaddress
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import replacing, write_atomic
from diskbook.facts.paths import SSH_CONFIG
from diskbook_emulator import machine, processes, template
from diskbook_emulator.machine import Machine, new_host_key
from diskbook_emulator.types import VmAddress, VmSpec

SOURCE = Path(__file__).with_name("jump.c")
ALIAS = "corp-jump"
"""Name of the jump host in the SSH configuration that the emulator writes."""
USER = "engineer"
"""Who may sign in there."""
LAST = 254  # byte of its address; machines begin at 2


def words(state: Path) -> list[str]:
    """Say how to use the jump host of an emulator, or its tunnels; nothing where it has none."""
    folder = state / "jump"
    if not (folder / "ssh_config").exists():
        return []
    return [
        f"its jump host: export {SSH_CONFIG}={folder / 'ssh_config'}, then --set network.jump_host={ALIAS}",
        f"tunnels of its Bastion: export PATH={folder / 'cli'}:$PATH",
        "a network of each region: --set network.kind=private --set network.resource_group=corp-network "
        "--set network.subnet=corp-REGION/machines",
    ]


def prefix_of(region: int) -> ipaddress.IPv4Network:
    """Addresses of the subnet of a region, by its number; no emulator gives them to a listener."""
    return ipaddress.IPv4Network(f"127.255.{1 + region}.0/24")


class JumpHost(Machine):
    """The jump host of one emulator, in `folder`."""

    def __init__(self, state: Path, name: str) -> None:
        address = f"{machine.network_of(state)}.{LAST}"
        at = VmAddress(address, machine.free_port(address, "jump"))
        super().__init__(state / "jump", f"{name}/{ALIAS}", at)

    @property
    def map(self) -> Path:
        """File of private addresses, and where the machines really listen."""
        return self.folder / "map"

    def begin(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._library()
        (_, (private, public)), *_ = new_host_key().items()
        write_atomic(self.folder / "id_ed25519", private, 0o600)
        self.tell({})
        self.prepare(_spec(public))
        self._write_client_files()
        self.start()

    def tell(self, machines: Mapping[str, tuple[VmAddress, str]]) -> None:
        """Replace what it knows: private address to where a machine listens, and the machine's id."""
        lines = [f"{private} {at.address} {at.port} {vm}\n" for private, (at, vm) in machines.items()]
        write_atomic(self.map, "".join(lines), 0o600)

    def environment(self) -> dict[str, str]:
        """What its sshd runs with, besides what that of any machine does."""
        listed = super().environment()
        loaded = f"{self._library()}:{listed['LD_PRELOAD']}"
        return {**listed, "LD_PRELOAD": loaded, "DISKBOOK_JUMP_MAP": str(self.map)}

    def _config(self, user: str) -> str:
        text = super()._config(user)
        return text.replace("AllowTcpForwarding no", "AllowTcpForwarding local\nPermitOpen *:22")

    def _library(self) -> Path:
        """Compile what is loaded into sshd, once."""
        built = self.folder / "jump.so"
        if not built.exists():
            with replacing(built, 0o755) as part:
                gcc = processes.require("gcc", "gcc")
                command = [gcc, "-O2", "-Wall", "-shared", "-fPIC", "-o", str(part), str(SOURCE), "-ldl"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise DiskbookError(f"the emulated jump host cannot be compiled: {done.stderr.strip()}")
        return built

    def _write_client_files(self) -> None:
        (key,) = self.folder.glob("host_*.pub")
        where = f"[{self.address.address}]:{self.address.port}"
        kind, blob = key.read_text("utf-8").split()[:2]
        write_atomic(self.folder / "known_hosts", f"{where} {kind} {blob}\n", 0o600)
        config = template("ssh_config").format(
            alias=ALIAS,
            address=self.address.address,
            port=self.address.port,
            user=USER,
            folder=self.folder,
        )
        write_atomic(self.folder / "ssh_config", config, 0o600)
        (self.folder / "cli").mkdir(exist_ok=True)
        az = template("az").format(python=shlex.quote(sys.executable), map=shlex.quote(str(self.map)))
        write_atomic(self.folder / "cli" / "az", az, 0o700)


def _spec(public_key: str) -> VmSpec:
    """A machine that lets in the holder of a key."""
    return VmSpec(
        id=f"/{ALIAS}",
        name=ALIAS,
        size="",
        zone=None,
        os="linux",
        admin_username=USER,
        authorized_keys=(public_key,),
        custom_data="",
    )
