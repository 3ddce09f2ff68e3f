"""Run a step on a Windows machine."""

from diskbook.clusters.powershell import scripts, steps
from diskbook.hosts.ssh_windows import NoAnswer, WindowsConnection


def run_step(
    connection: WindowsConnection, step: str, request: steps.Request, *, limit_s: float
) -> steps.Answer:
    """Run a step; its script is put on the machine before, once a connection.

    - `step`, `request`: the step, and what it is asked; it travels on standard input alone.
    - `limit_s`: after this it is taken for hung.

    Raises StepFailed with the machine's own sentence, or when the step does not end.
    """
    node, needed = connection.host.name, steps.scripts(step, request)
    texts = {scripts.path(name): scripts.script(name) for name in needed}
    try:
        output = connection.run_script(
            steps.command(step), steps.standard_input(request), texts, limit_s=limit_s
        )
    except NoAnswer as error:
        raise steps.StepFailed(f"{node}: step {step} {error}") from None
    streams = output.stdout if b"{" in output.stdout else output.stdout + output.stderr
    return steps.outcome(step, streams.decode(errors="replace"), node, needed[0])
