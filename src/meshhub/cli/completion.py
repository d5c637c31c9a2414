"""`meshhub completion`: the scripts that complete commands, options, values and files in a shell."""

from __future__ import annotations

import click

from meshhub.cli.verbosity import verbosity


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@verbosity
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and values.

    \b
    bash  meshhub completion bash \\
            > ~/.local/share/bash-completion/completions/meshhub
    zsh   meshhub completion zsh > ~/.zfunc/_meshhub
          with "fpath+=~/.zfunc" in ~/.zshrc before "compinit"
    fish  meshhub completion fish > ~/.config/fish/completions/meshhub.fish

    bash must be version 4.4 or later. The script asks meshhub at each completion, so that the options
    of plug-ins that are installed later are completed too.
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(ctx.find_root().command, {}, "meshhub", "_MESHHUB_COMPLETE").source())
