"""`ebbtide tools`: the tools for language models: their declarations, instructions, and a call."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ebbtide.cli.console import write_json, write_text
from ebbtide.cli.credentials import credentials
from ebbtide.cli.options import DEFAULT_AGENT, DEFAULT_URL, Agent, ApiKeyFile, CaFile, ClientCert, Url

tools = typer.Typer(help="Give the memory to a language model as tools.", no_args_is_help=True)


class Format(StrEnum):
    """The forms of the declarations."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    MCP = "mcp"


class Language(StrEnum):
    """The languages of descriptions and instructions."""

    EN = "en"
    ZH = "zh"


class Role(StrEnum):
    """The roles of models."""

    ASSISTANT = "assistant"
    ARCHIVIST = "archivist"


Lang = Annotated[Language, typer.Option("--lang", help="Language of the texts.")]


@tools.command("list")
def list_tools(
    form: Annotated[Format, typer.Option("--format", help="Form of the declarations.")] = Format.OPENAI,
    lang: Lang = Language.EN,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Print the declarations of the tools as JSON."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_json(remote.list_tools(form.value, lang.value)["tools"])


@tools.command("prompt")
def get_tool_prompt(
    lang: Lang = Language.EN,
    role: Annotated[Role, typer.Option("--role", help="Role of the model.")] = Role.ASSISTANT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Print the instructions for the system prompt of a model."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_text(remote.get_tool_prompt(lang.value, role.value)["text"].rstrip("\n"))


@tools.command("call")
def call_tool(
    name: Annotated[str, typer.Argument(metavar="TOOL", help="The name of a tool, such as recall.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="The arguments as the model sent them.")],
    agent: Agent = DEFAULT_AGENT,
    url: Url = DEFAULT_URL,
    api_key_file: ApiKeyFile = None,
    ca_file: CaFile = None,
    client_cert: ClientCert = None,
) -> None:
    """Perform the call of a tool and print its result as JSON."""
    from ebbtide.cli.remote import RemoteClient

    with RemoteClient(url, credentials(api_key_file, ca_file, client_cert)) as remote:
        write_json(remote.call_tool(agent, name, arguments))
