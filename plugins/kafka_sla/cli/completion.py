"""A script that completes commands and options in bash, and in zsh through bashcompinit."""

from __future__ import annotations

import argparse

_SCRIPT = """\
if [ -n "${{ZSH_VERSION-}}" ]; then autoload -U +X bashcompinit && bashcompinit; fi
_kafka_sla() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} command= words=
  for one in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $one in {commands}) command=$one ;; esac
  done
  case $command in
{cases}
    *) words="{words}" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _kafka_sla kafka-sla"""


def script(parser: argparse.ArgumentParser) -> str:
    """The script for a shell to evaluate."""
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    cases = [f'    {name}) words="{" ".join(_words(command))}" ;;' for name, command in commands.choices.items()]
    own = [*commands.choices, *_options(parser)]
    return _SCRIPT.format(commands="|".join(commands.choices), cases="\n".join(cases), words=" ".join(own))


def _words(command: argparse.ArgumentParser) -> list[str]:
    """Options, and what its arguments may be."""
    chosen = [str(choice) for action in command._actions for choice in action.choices or ()]
    return [*chosen, *_options(command)]


def _options(command: argparse.ArgumentParser) -> list[str]:
    return [text for action in command._actions for text in action.option_strings if text.startswith("--")]
