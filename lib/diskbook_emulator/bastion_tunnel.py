"""Stands in for `az network bastion tunnel`: `python -m diskbook_emulator.bastion_tunnel MAP COMMAND ...`.

It takes the command line that the workbook uses, listens at the port asked for, and hands every connection on
to where the machine really listens. Other commands of the Azure CLI it does not know.
"""

import asyncio
import contextlib
import sys
from pathlib import Path

import click


@click.group()
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_context
def az(context: click.Context, table: Path) -> None:
    """Commands of the Azure CLI, for machines in a map of an emulated jump host."""
    context.obj = table


@az.group()
def network() -> None:
    """Networks."""


@network.group()
def bastion() -> None:
    """Azure Bastion."""


@bastion.command()
@click.option("--name", required=True)
@click.option("--resource-group", required=True)
@click.option("--subscription")
@click.option("--target-resource-id", required=True)
@click.option("--resource-port", type=int, required=True)
@click.option("--port", type=int, required=True)
@click.pass_obj
def tunnel(table: Path, target_resource_id: str, resource_port: int, port: int, **_: str) -> None:
    """Listen at a port of this computer and hand connections on to the target."""
    place = where(table, target_resource_id)
    if place is None or resource_port != 22:
        raise click.ClickException(f"(ResourceNotFound) {target_resource_id}:{resource_port} is not there")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(port, *place))


def where(table: Path, target: str) -> tuple[str, int] | None:
    """Where a machine listens, by the map of the jump host; None where it is not in it."""
    for line in table.read_text("utf-8").splitlines():
        _, address, port, machine = line.split()
        if machine.lower() == target.lower():
            return address, int(port)
    return None


async def _serve(port: int, to_address: str, to_port: int) -> None:
    async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            to_reader, to_writer = await asyncio.open_connection(to_address, to_port)
            await asyncio.gather(_pump(reader, to_writer), _pump(to_reader, writer))
        writer.close()

    server = await asyncio.start_server(hand_on, "127.0.0.1", port)
    click.echo("Opening tunnel; connect as you would to the machine itself.", err=True)
    async with server:
        await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    az.main(sys.argv[1:], prog_name="az")
