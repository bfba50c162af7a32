"""The deployment files match the code: paths, ports, variables, services, probes and commands.

The tests need no container engine, service manager or cluster. They parse the files as those tools do (interpolation,
merges and drop-in rules as far as used here) and look up each reference: settings through `load_settings`, routes in
the app, commands in the command line, exit codes in their table. `tests/integration/test_image_steps.py` runs the steps
of the image.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import typer.main
import yaml

from ebbtide import __version__
from ebbtide.cli.app import app as command_line
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.daemon import refuse_insecure_bind
from ebbtide.process.stop_guard import closing_time_s
from ebbtide.rest.app import create_app
from ebbtide.settings import ServerSettings, Settings, load_settings
from tests.support.in_process import service_in
from tests.tidy.pages import PACKAGE, ROOT, read

DRAIN_S = closing_time_s(ServerSettings().shutdown_grace_s)
"""The longest time that closing every agent may take after the grace time."""

OLLAMA_PORT = 11434
KUBERNETES = ROOT / "deploy" / "kubernetes"
OVERLAY = ROOT / "deploy" / "cluster" / "kubernetes"
UNIT = "deploy/systemd/ebbtide.service"
FILES = (
    "Dockerfile",
    "docker-compose.yml",
    "docs/deploying.md",
    "README.zh-CN.md",
    UNIT,
    "deploy/systemd/ebbtide.env",
    *(str(path.relative_to(ROOT)) for path in sorted(KUBERNETES.glob("*.yaml"))),
    "deploy/cluster/docker-compose.yml",
    *(str(path.relative_to(ROOT)) for path in sorted(OVERLAY.glob("*.yaml"))),
)
NOT_SETTINGS = {"EBBTIDE_URL", "EBBTIDE_DEPLOY_TESTS"}
"""Variables of the command line and of the tests."""


# --- Dockerfile ------------------------------------------------------------------------------------


class Step(NamedTuple):
    """An instruction of the Dockerfile and its stage, from 0."""

    stage: int
    word: str
    rest: str


def steps() -> list[Step]:
    """Return the instructions of the Dockerfile in order, with continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", read("Dockerfile"), flags=re.MULTILINE)
    found: list[Step] = []
    stage = -1
    for line in re.sub(r"\\\n", " ", text).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            stage += word == "FROM"
            found.append(Step(stage, word, rest.strip()))
    return found


def the(word: str, stage: int = 1) -> str:
    """Return the argument of the only instruction with this name in a stage."""
    (found,) = [step.rest for step in steps() if step.word == word and step.stage == stage]
    return found


def image_environment() -> dict[str, str]:
    """Return the variables that the image sets."""
    return dict(part.split("=", 1) for part in shlex.split(the("ENV")))


def health_check() -> list[str]:
    """Return the command of the image's health check."""
    command: list[str] = json.loads(the("HEALTHCHECK").partition("CMD ")[2])
    return command


def reaches_the_build(path: str) -> bool:
    """Whether .dockerignore includes a file or folder in the build; the last matching line decides."""
    is_ignored = False
    for line in read(".dockerignore").splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        if line and not line.startswith("#"):
            parts = path.split("/")
            above = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
            candidates = [*above, *parts] if "**/" in line else above
            if any(fnmatch(candidate, pattern) for candidate in candidates):
                is_ignored = not line.startswith("!")
    return not is_ignored


def copied() -> list[str]:
    """Return the paths that the build copies from the repository, in order."""
    return [
        source
        for step in steps()
        if step.word == "COPY" and not step.rest.startswith("--from")
        for source in step.rest.split()[:-1]
    ]


def test_the_build_gets_what_it_copies_and_nothing_more() -> None:
    """The build context contains all files that the Dockerfile copies, but no data, secrets or history."""
    assert copied()
    assert [path for path in copied() if not (ROOT / path).exists() or not reaches_the_build(path)] == []
    assert reaches_the_build("service/ebbtide/settings.py")
    others = (
        ".git/config",
        ".env",
        ".venv/x",
        "data/lock",
        "tests/conftest.py",
        "service/a/__pycache__/x.pyc",
        "service/ebbtide/web/files/index.html",
        "web/node_modules/preact/package.json",
    )
    assert [path for path in others if reaches_the_build(path)] == []


def test_the_package_can_be_built_from_what_is_copied() -> None:
    """README, licence, packages, build hook and sources of the view are copied before the package is installed."""
    project = tomllib.loads(read("pyproject.toml"))
    needed = [project["project"]["readme"], *project["project"]["license-files"]]
    needed += project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed += ["hatch_build.py", "build_view.py", "web", "clients/typescript/src"]
    there = tuple(f"{path}/" for path in copied())
    assert [path for path in needed if not f"{path}/".startswith(there)] == []
    last = [step for step in steps() if step.stage == 0][-1]
    assert (last.word, last.rest) == ("RUN", "/opt/ebbtide/bin/pip install --no-deps .")


def test_the_dependencies_of_the_image_are_those_of_the_package() -> None:
    """The step that pins the dependencies lists those of pyproject.toml, with two extras."""
    (line,) = [step.rest for step in steps() if "tomllib" in step.rest]
    program = shlex.split(line.partition(" > ")[0])
    assert program[0] == "python"
    done = subprocess.run(
        [sys.executable, *program[1:]], cwd=ROOT, capture_output=True, text=True, check=True
    )
    project = tomllib.loads(read("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    expected = [*project["dependencies"], *extras["embeddings-multilingual"], *extras["cluster"]]
    assert done.stdout.splitlines() == expected


def test_the_image_has_two_stages_and_one_interpreter() -> None:
    """Both stages use the same supported Python, and the environment has the same path in both."""
    bases = [step.rest.split()[0] for step in steps() if step.word == "FROM"]
    assert bases == ["${BASE}", "${BASE}"]
    major_minor = re.search(r"python:(\d+)\.(\d+)-slim", the("ARG", -1))
    lowest = re.fullmatch(
        r">=(\d+)\.(\d+)", tomllib.loads(read("pyproject.toml"))["project"]["requires-python"]
    )
    assert major_minor and lowest
    assert tuple(map(int, major_minor.groups())) >= tuple(map(int, lowest.groups()))
    source, target = the("COPY").split()[1:]
    assert source == target
    assert image_environment()["PATH"].startswith(f"{target}/bin:")


def test_the_image_runs_as_an_unprivileged_user() -> None:
    """The user id is a number other than 0, owns the data directory, and installs nothing."""
    user = re.fullmatch(r"([1-9]\d*):([1-9]\d*)", the("USER"))
    assert user is not None
    directory = image_environment()["EBBTIDE_STORE__DATA_DIR"]
    assert json.loads(the("VOLUME")) == [directory]
    assert f"--owner={user[1]} --group={user[2]} --mode=0700 {directory}" in the("RUN")
    final = [step.word for step in steps() if step.stage == 1]
    assert set(final[final.index("USER") :]) == {"USER", "HEALTHCHECK", "STOPSIGNAL", "CMD"}


def test_sigterm_reaches_the_daemon() -> None:
    """The command is a list without a shell, exists with its options, and is stopped by SIGTERM."""
    assert the("STOPSIGNAL") == "SIGTERM"
    command = json.loads(the("CMD"))
    assert command[0] in tomllib.loads(read("pyproject.toml"))["project"]["scripts"]
    understood(command)


async def test_the_health_check_asks_a_route_that_exists(tmp_path: Path) -> None:
    """The health check is a list, runs with the image's programs, and requests readiness on the daemon's port."""
    program, option, source = health_check()
    assert (program, option) == ("python", "-c")
    compile(source, "health check", "exec")
    assert "'http://127.0.0.1:%s/readyz'" in source
    assert await statuses(tmp_path, ("/readyz", "127.0.0.1")) == [200]
    assert f"'EBBTIDE_SERVER__REST_PORT', '{Settings().server.rest_port}'" in source


def test_the_ports_of_the_image_are_the_daemons() -> None:
    """The image exposes the ports that the daemon listens on by default."""
    assert [int(port) for port in the("EXPOSE").split()] == ports()


# --- what the code says ----------------------------------------------------------------------------


def ports() -> list[int]:
    """Return the ports of the daemon."""
    server = Settings.model_fields["server"].default
    return [server.rest_port, server.grpc_port]


async def statuses(tmp_path: Path, *calls: tuple[str, str]) -> list[int]:
    """Return the status of each path and `Host` for a daemon with the current environment."""
    async with service_in(tmp_path / "data") as service:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return [(await client.get(path, headers={"Host": host})).status_code for path, host in calls]


def understood(command: list[str]) -> None:
    """Assert that the command line has this command, and that the command takes these options."""
    found: Any = typer.main.get_command(command_line)
    words = command[1:]
    while hasattr(found, "commands"):
        found, words = found.commands[words[0]], words[1:]
    known = {option for parameter in found.params for option in parameter.opts}
    assert [word for word in words if word.startswith("-") and word not in known] == [], command


def settings_of(environment: Mapping[str, Any], patch: pytest.MonkeyPatch) -> Settings:
    """Return the valid settings of a daemon with this environment."""
    for name in [name for name in os.environ if name.startswith("EBBTIDE_")]:
        patch.delenv(name)
    for name, value in environment.items():
        assert isinstance(value, str), f"{name} is not a text"
        patch.setenv(name, value)
    settings = load_settings()
    for name in environment:
        if name.startswith("EBBTIDE_"):
            section, _, field = name.removeprefix("EBBTIDE_").lower().partition("__")
            assert hasattr(getattr(settings, section), field), name
    refuse_insecure_bind(settings)
    return settings


def test_every_variable_named_is_a_setting() -> None:
    """Every `EBBTIDE_` variable in the files, including comments, belongs to a setting."""
    known = {
        f"EBBTIDE_{section}__{name}".upper()
        for section, field in Settings.model_fields.items()
        for name in field.annotation.model_fields  # type: ignore[union-attr]
    }
    for name in FILES:
        named = set(re.findall(r"\bEBBTIDE_[A-Z_]*[A-Z]\b", read(name)))
        assert named <= known | NOT_SETTINGS, name


def test_every_example_of_a_setting_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon accepts each `VARIABLE=value` of the example files and the page, commented out or not."""
    for name in ("deploy/systemd/ebbtide.env", "docs/deploying.md", "README.zh-CN.md", "docker-compose.yml"):
        for variable, value in re.findall(r"(EBBTIDE_[A-Z]+__[A-Z_]+)=([^\s`]+)", read(name)):
            (unquoted,) = shlex.split(value)
            settings_of({variable: unquoted}, monkeypatch)
    manifest = (KUBERNETES / "statefulset.yaml").read_text(encoding="utf-8")
    for variable, value in re.findall(r"# - name: (EBBTIDE_\w+)\n\s*#   value: (\S+)", manifest):
        settings_of({variable: value}, monkeypatch)


def test_versions_are_that_of_the_package() -> None:
    """Every tag of the image in files and commands is the version of the package."""
    for name in FILES:
        assert set(re.findall(r"\bebbtide:(\d[\w.]*)", read(name))) <= {__version__, *map(str, ports())}, name
    (image,) = load("kustomization.yaml")[0]["images"]
    assert image["newTag"] == __version__


# --- docker-compose.yml ----------------------------------------------------------------------------


def interpolated(text: str) -> str:
    """Return a text as Compose interpolates it without variables: `${NAME:-default}`, `$$`."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
    assert not re.search(r"(?<!\$)\$[\w{]", text), "a variable without a default"
    return text.replace("$$", "$")


def compose() -> dict[str, Any]:
    """Return the compose file, merged and interpolated."""
    tree: dict[str, Any] = yaml.safe_load(interpolated(read("docker-compose.yml")))
    return tree


def seconds(duration: str) -> float:
    """Return a duration such as 60s or 1m in seconds."""
    number, unit = re.fullmatch(r"(\d+)(s|m|h)", duration).groups()  # type: ignore[union-attr]
    return float(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def daemons() -> dict[str, dict[str, Any]]:
    """Return the services that run the daemon."""
    return {name: service for name, service in compose()["services"].items() if "build" in service}


@pytest.mark.parametrize("name", ["ebbtide", "ebbtide-builtin"])
async def test_compose_starts_a_daemon_its_network_can_call(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each daemon starts with its settings and responds under every name of its network."""
    service = daemons()[name]
    settings = settings_of(image_environment() | service["environment"], monkeypatch)
    aliases = service.get("networks", {}).get("default", {}).get("aliases", [])
    names = [name, *aliases]
    assert "ebbtide" in names
    calls = [("/healthz", f"{called}:8420") for called in names]
    assert await statuses(tmp_path, *calls, ("/healthz", "elsewhere")) == [200] * len(names) + [421]
    assert seconds(service["stop_grace_period"]) >= settings.server.shutdown_grace_s + DRAIN_S
    mounts = dict(mount.split(":")[:2] for mount in service["volumes"])
    assert mounts == {"data": str(settings.store.data_dir)}
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert not {"command", "entrypoint", "user", "healthcheck"} & service.keys(), "the image's own are tested"


def test_compose_publishes_on_this_machine_only() -> None:
    """Only the daemons publish ports, on 127.0.0.1, and the host's network is not used."""
    for name, service in compose()["services"].items():
        published = [port.rpartition(":") for port in service.get("ports", [])]
        if name in daemons():
            assert [int(inside) for _, _, inside in published] == ports()
            assert [outside for outside, _, _ in published] == [f"127.0.0.1:{port}" for port in ports()]
        else:
            assert published == []
        assert not {"network_mode", "privileged"} & service.keys()


def test_compose_runs_ollama_with_the_models_in_a_volume() -> None:
    """Ollama stores its models in a separate volume, and every mounted volume is declared."""
    tree = compose()
    ollama = tree["services"]["ollama"]
    assert ollama["volumes"] == [f"models:{ollama['environment']['OLLAMA_MODELS']}"]
    for service in tree["services"].values():
        for mount in service.get("volumes", []):
            assert mount.partition(":")[0] in tree["volumes"]


def test_compose_waits_for_ollama_and_its_model() -> None:
    """The daemon starts after Ollama is healthy and the model is pulled; both conditions can be met."""
    services = compose()["services"]
    wanted = {name: how["condition"] for name, how in services["ebbtide"]["depends_on"].items()}
    assert wanted == {"ollama": "service_healthy", "ollama-pull": "service_completed_successfully"}
    for service in services.values():
        for name, how in service.get("depends_on", {}).items():
            assert "profiles" not in services[name]
            if how["condition"] == "service_healthy":
                assert services[name]["healthcheck"]["test"][0] == "CMD"
            else:
                assert services[name]["restart"] == "no"


def test_compose_pulls_the_model_that_the_daemon_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """One variable names the model for both, with the default of the settings, on the same Ollama."""
    services = compose()["services"]
    settings = settings_of(services["ebbtide"]["environment"], monkeypatch)
    assert settings.language.model == "ollama"
    assert settings.language.base_url == f"http://ollama:{OLLAMA_PORT}"
    pull = services["ollama-pull"]
    assert pull["environment"]["MODEL"] == settings.language.model_name
    assert settings.language.model_name == Settings.model_fields["language"].default.model_name
    assert pull["environment"]["OLLAMA_HOST"] == settings.language.base_url
    assert pull["image"] == services["ollama"]["image"]
    assert read("docker-compose.yml").count("${EBBTIDE_LANGUAGE__MODEL_NAME:-") == 2
    (script,) = pull["command"]
    subprocess.run(["sh", "-n", "-c", script], check=True)


@pytest.mark.parametrize("has_model", [False, True], ids=["missing", "there"])
def test_a_model_is_pulled_only_when_it_is_missing(has_model: bool, tmp_path: Path) -> None:
    """The init service pulls only a missing model, so it needs no network otherwise."""
    stub = tmp_path / "ollama"
    stub.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n[ "$1" != show ] || exit {int(not has_model)}\n'
    )
    stub.chmod(0o755)
    service = compose()["services"]["ollama-pull"]
    environment = {**service["environment"], "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([*service["entrypoint"], *service["command"]], env=environment, check=False)
    assert done.returncode == 0
    model = service["environment"]["MODEL"]
    wanted = [f"show {model}"] if has_model else [f"show {model}", f"pull {model}"]
    assert (tmp_path / "calls").read_text().splitlines() == wanted


def test_compose_has_a_profile_without_ollama(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile's daemon depends on no service and uses the same data."""
    service = daemons()["ebbtide-builtin"]
    assert service["profiles"] == ["builtin"]
    assert "depends_on" not in service
    assert settings_of(service["environment"], monkeypatch).language.model == "builtin"
    assert service["volumes"] == daemons()["ebbtide"]["volumes"]


# --- systemd ---------------------------------------------------------------------------------------


def unit() -> dict[str, dict[str, list[str]]]:
    """Return the unit as section, key, and values in order."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in read(UNIT).splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            section.setdefault(key, []).append(value)
    return found


def test_the_unit_starts_a_daemon_in_its_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command exists, the settings are valid, and the data directory is writable under systemd."""
    service = unit()["Service"]
    (line,) = service["ExecStart"]
    program, *arguments = line.split()
    understood(["ebbtide", *arguments])
    assert f"sudo python3 -m venv {Path(program).parents[1]}\n" in read("docs/deploying.md")
    settings = settings_of(dict(text.split("=", 1) for text in service["Environment"]), monkeypatch)
    assert service["StateDirectory"] == [settings.store.data_dir.name]
    assert settings.store.data_dir.parent == Path("/var/lib")
    assert service["WorkingDirectory"] == [str(settings.store.data_dir)]
    assert settings.server.allow_insecure is False
    assert float(service["TimeoutStopSec"][0]) >= settings.server.shutdown_grace_s + DRAIN_S


def test_the_unit_says_what_is_true_of_the_daemon() -> None:
    """The type is not `notify`, the signal is SIGTERM, and only exits that a retry can fix are retried."""
    service = unit()["Service"]
    speaks = any("NOTIFY_SOCKET" in path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert service["Type"] == ["notify" if speaks else "exec"]
    assert "KillSignal" not in service
    codes = {ExitCode(int(code)).name for code in service["RestartPreventExitStatus"][0].split()}
    assert codes == {"USAGE", "BAD_SETTING", "NO_CONFIG", "INSECURE_BIND"}


def test_the_unit_is_shut_in() -> None:
    """The unit has its own user, a read-only file system, no privileges, and only local addresses."""
    service = {key: values[-1] for key, values in unit()["Service"].items()}
    wanted = {"DynamicUser": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "NoNewPrivileges": "yes"}
    wanted |= {"CapabilityBoundingSet": "", "IPAddressDeny": "any", "IPAddressAllow": "localhost"}
    assert {key: service.get(key) for key in wanted} == wanted


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    """`systemd-analyze verify` reports nothing."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / "ebbtide.service"
    copy.write_text(read(UNIT).replace("/opt/ebbtide/bin/ebbtide", sys.executable), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    about_it = [line for line in done.stderr.splitlines() if "ebbtide" in line]
    assert (done.returncode, about_it) == (0, [])


# --- Kubernetes ------------------------------------------------------------------------------------


def load(name: str) -> list[dict[str, Any]]:
    """Return the documents of a manifest."""
    return list(yaml.safe_load_all((KUBERNETES / name).read_text(encoding="utf-8")))


def manifests() -> Iterator[dict[str, Any]]:
    """Return the objects that are applied."""
    for name in load("kustomization.yaml")[0]["resources"]:
        yield from load(name)


def objects(kind: str) -> list[dict[str, Any]]:
    """Return the objects of a kind."""
    return [manifest for manifest in manifests() if manifest["kind"] == kind]


def pod() -> dict[str, Any]:
    """Return the pod's specification."""
    (stateful_set,) = objects("StatefulSet")
    specification: dict[str, Any] = stateful_set["spec"]["template"]["spec"]
    return specification


def test_every_manifest_is_applied() -> None:
    """The kustomization lists each manifest of its folder once, and no missing file."""
    beside = sorted(path.name for path in KUBERNETES.glob("*.yaml") if path.name != "kustomization.yaml")
    assert sorted(load("kustomization.yaml")[0]["resources"]) == beside


# The schemas are read from files that the package leaves to be closed by themselves.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("version", ["oldest", "newest"])
def test_kubernetes_understands_the_manifests(version: str) -> None:
    """Every object matches the strict schema of its kind, in the oldest documented and the newest version."""
    import kubernetes_validate

    oldest = re.search(r"Kubernetes (1\.\d+) and newer", read("docs/deploying.md"))
    assert oldest is not None
    wanted = oldest[1] if version == "oldest" else kubernetes_validate.latest_version()
    for manifest in manifests():
        kubernetes_validate.validate(manifest, wanted, strict=True)


async def test_the_pod_runs_a_daemon_the_namespace_can_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon starts with its settings and responds to every name of its service; only it sets EBBTIDE_…."""
    (container,) = pod()["containers"]
    environment = {entry["name"]: entry["value"] for entry in container["env"]}
    settings = settings_of(image_environment() | environment, monkeypatch)
    service = next(s for s in objects("Service") if s["spec"].get("type") == "ClusterIP")
    short = service["metadata"]["name"]
    longer = f"{short}.{service['metadata']['namespace']}"
    names = (short, longer, f"{longer}.svc", f"{longer}.svc.cluster.local")
    calls = [("/healthz", f"{name}:8420") for name in names]
    assert await statuses(tmp_path, *calls) == [200] * len(names)
    assert pod()["enableServiceLinks"] is False
    assert pod()["terminationGracePeriodSeconds"] >= settings.server.shutdown_grace_s + DRAIN_S
    inside = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert inside == {"rest": settings.server.rest_port, "grpc": settings.server.grpc_port}
    for exposed in objects("Service"):
        listed = {port["targetPort"]: port["port"] for port in exposed["spec"]["ports"]}
        assert listed == inside, exposed["metadata"]["name"]
    assert not {"command", "args"} & container.keys(), "the image's own are tested"


async def test_probes_ask_routes_that_answer_them(tmp_path: Path) -> None:
    """Each probe requests the right route of the REST port with an accepted `Host`."""
    (container,) = pod()["containers"]
    asked = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    for probe, path in asked.items():
        get = container[probe]["httpGet"]
        assert (get["path"], get["port"]) == (path, "rest")
        headers = {header["name"]: header["value"] for header in get["httpHeaders"]}
        assert await statuses(tmp_path / probe, (path, headers["Host"])) == [200]


def test_the_pod_stores_only_its_data() -> None:
    """There is one pod, not as root, with its claim at the data directory and a read-only file system."""
    (stateful_set,) = objects("StatefulSet")
    (container,) = pod()["containers"]
    assert stateful_set["spec"]["replicas"] == 1
    (claim,) = stateful_set["spec"]["volumeClaimTemplates"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts.pop(claim["metadata"]["name"]) == image_environment()["EBBTIDE_STORE__DATA_DIR"]
    assert mounts.keys() == {volume["name"] for volume in pod()["volumes"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    user, group = (int(number) for number in the("USER").split(":"))
    context = pod()["securityContext"]
    assert context["runAsNonRoot"] is True
    assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (user, group, group)
    assert f"`{claim['metadata']['name']}-{stateful_set['metadata']['name']}-0`" in read("docs/deploying.md")


def test_names_and_labels_meet() -> None:
    """Services, policy and StatefulSet select the pod, in one namespace; the governing service is headless."""
    (stateful_set,) = objects("StatefulSet")
    labels = stateful_set["spec"]["template"]["metadata"]["labels"].items()
    (policy,) = objects("NetworkPolicy")
    selectors = [s["spec"]["selector"] for s in objects("Service")]
    selectors += [
        stateful_set["spec"]["selector"]["matchLabels"],
        policy["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels for selector in selectors)
    governing = {s["metadata"]["name"]: s["spec"] for s in objects("Service")}[
        stateful_set["spec"]["serviceName"]
    ]
    assert governing["clusterIP"] == "None"
    (namespace,) = objects("Namespace")
    others = [m["metadata"].get("namespace") for m in manifests() if m["kind"] != "Namespace"]
    assert set(others) == {namespace["metadata"]["name"]}


def test_only_the_namespace_reaches_the_daemon() -> None:
    """Only pods of the namespace reach the daemon's ports, and no service is exposed outside."""
    (policy,) = objects("NetworkPolicy")
    (rule,) = policy["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {}}]
    assert [port["port"] for port in rule["ports"]] == ["rest", "grpc"]
    assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    assert {service["spec"].get("type", "ClusterIP") for service in objects("Service")} == {"ClusterIP"}
    assert objects("Ingress") == []


# --- a cluster -----------------------------------------------------------------------------------


def overlay(name: str) -> dict[str, Any]:
    """Return the document of a file of the overlay for a cluster."""
    found: dict[str, Any] = yaml.safe_load((OVERLAY / name).read_text(encoding="utf-8"))
    return found


def test_the_overlay_applies_its_files() -> None:
    """Each file is a resource or a patch, but for the job and the values of the Helm chart, which the page names."""
    lists = overlay("kustomization.yaml")
    applied = {*lists["resources"], *(patch["path"] for patch in lists["patches"])} - {"../../kubernetes"}
    others = {"kustomization.yaml", "init.yaml", "nats-values.yaml"}
    assert {path.name for path in OVERLAY.glob("*.yaml")} == applied | others
    page = read("docs/cluster.md")
    assert (
        "deploy/cluster/kubernetes/init.yaml" in page and "deploy/cluster/kubernetes/nats-values.yaml" in page
    )


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_kubernetes_understands_the_overlay() -> None:
    """Whole objects match the strict schema of their kind; with kubectl, also the patched ones."""
    import kubernetes_validate

    objects = [overlay("init.yaml"), overlay("poddisruptionbudget.yaml")]
    kubectl = shutil.which("kubectl")
    if kubectl is not None:
        done = subprocess.run([kubectl, "kustomize", OVERLAY], capture_output=True, text=True, check=True)
        objects += yaml.safe_load_all(done.stdout)
    for each in objects:
        kubernetes_validate.validate(each, kubernetes_validate.latest_version(), strict=True)


def test_each_pod_of_the_overlay_is_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings are valid, its name and address are those of the pod, and a stop has time to drain."""
    specification = overlay("statefulset.yaml")["spec"]["template"]["spec"]
    [container] = specification["containers"]
    fields = {
        one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"]
        for one in container["env"]
        if "valueFrom" in one
    }
    assert fields == {
        "EBBTIDE_CLUSTER__NODE": "metadata.name",
        "EBBTIDE_CLUSTER__HOST": "status.podIP",
    }
    environment = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    base = {one["name"]: one["value"] for one in pod()["containers"][0]["env"]}
    settings = settings_of(
        image_environment()
        | base
        | environment
        | {"EBBTIDE_CLUSTER__NODE": "ebbtide-0", "EBBTIDE_CLUSTER__HOST": "10.0.0.1"},
        monkeypatch,
    )
    assert container["ports"] == [{"name": "cluster", "containerPort": settings.cluster.port}]
    needed = settings.cluster.drain_s + settings.server.shutdown_grace_s + DRAIN_S
    assert specification["terminationGracePeriodSeconds"] >= needed
    [mount] = container["volumeMounts"]
    for file in (settings.cluster.secret_file, settings.encryption.master_key_file):
        path = Path(file)
        assert str(path.parent) == mount["mountPath"]
        assert f"--from-file={path.name}" in read("docs/cluster.md")
    assert specification["volumes"][0]["secret"]["secretName"] in read("docs/cluster.md")


def test_the_log_servers_of_the_overlay_are_those_of_its_values() -> None:
    """Three servers that sync each record; nodes may reach their ports, and each other on theirs."""
    values = overlay("nats-values.yaml")
    assert values["config"]["jetstream"]["merge"] == {"sync_interval": "always"}
    count = values["config"]["cluster"]["replicas"]
    [container] = overlay("statefulset.yaml")["spec"]["template"]["spec"]["containers"]
    servers = json.loads(next(one["value"] for one in container["env"] if "SERVERS" in one["name"]))
    assert servers == [f"nats://nats-{number}.nats-headless.nats:4222" for number in range(count)]
    command = overlay("init.yaml")["spec"]["template"]["spec"]["containers"][0]["command"]
    understood(command)
    assert command[-1] in servers
    policy = overlay("networkpolicy.yaml")["spec"]
    [base] = objects("NetworkPolicy")
    assert policy["ingress"][:-1] == base["spec"]["ingress"]
    assert policy["egress"][:-1] == base["spec"]["egress"]
    assert [port["port"] for port in policy["ingress"][-1]["ports"]] == ["cluster"]
    ports = [port["port"] for port in policy["egress"][-1]["ports"]]
    assert ports == [4222, values["config"]["monitor"]["port"]]


def test_the_compose_file_of_a_cluster_starts_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node has valid settings and time to drain, and the command that creates the cluster exists."""
    services = yaml.safe_load(read("deploy/cluster/docker-compose.yml"))["services"]
    understood(services["init"]["command"])
    nodes = {name: service for name, service in services.items() if name.startswith("e")}
    assert len(nodes) == 3
    for name, service in nodes.items():
        settings = settings_of(image_environment() | service["environment"], monkeypatch)
        assert (settings.cluster.node, settings.cluster.advertise) == (name, f"{name}:8422")
        needed = settings.cluster.drain_s + settings.server.shutdown_grace_s + DRAIN_S
        assert seconds(service["stop_grace_period"]) >= needed


# --- the page --------------------------------------------------------------------------------------


def page_commands() -> list[list[str]]:
    """Return the words of every command in docs/deploying.md."""
    blocks = re.findall(r"^```bash\n(.*?)^```", read("docs/deploying.md"), re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [
        shlex.split(part, comments=True)
        for line in lines
        for part in re.split(r" && | &$", re.sub(r" +# .*", "", line))
        if part.strip()
    ]


def test_commands_of_the_page_name_what_exists() -> None:
    """Files, services of Compose, the unit, objects of Kubernetes, volumes and our own commands all exist."""
    services, volumes = compose()["services"], {v["name"] for v in compose()["volumes"].values()}
    kinds = {f"{m['kind'].lower()}/{m['metadata']['name']}" for m in manifests()}
    for words in page_commands():
        text = " ".join(words)
        assert [w for w in words if w.startswith("deploy/") and not (ROOT / w).exists()] == []
        if text.startswith("docker compose"):
            named = [w for w in words[2:] if w in services or re.match(r"(ebbtide|ollama)", w)]
            assert [w for w in named if w not in services] == [], text
            profiles = [p for before, p in pairwise(words) if before == "--profile"]
            assert [p for p in profiles if p not in services["ebbtide-builtin"]["profiles"]] == []
        if "systemctl" in words[:2] and "daemon-reload" not in words:
            assert words[-1] == Path(UNIT).stem, text
        if words[0] == "kubectl":
            assert [w for w in words if re.match(r"(statefulset|service)/", w) and w not in kinds] == [], text
            assert "--namespace" in words or "--kustomize" in words
        for before, mount in pairwise(words):
            if before == "--volume" and mount.startswith("ebbtide"):
                assert mount.partition(":")[0] in volumes
        ours = re.search(r"(?:^|/| )ebbtide (check|serve)\b.*", text)
        if ours and "systemctl" not in text:
            understood(["ebbtide", *ours[0].split("ebbtide ", 1)[1].split()])


async def test_addresses_of_the_page_are_the_daemons(tmp_path: Path) -> None:
    """Every address on the page has a port of the daemon, and every requested path is a route."""
    named = re.findall(r"http://([\w.-]+):(\d+)(/[\w/]*)?", read("docs/deploying.md"))
    assert {int(port) for _, port, _ in named} <= set(ports())
    paths = sorted({path for _, _, path in named if path})
    assert await statuses(tmp_path, *((path, "localhost") for path in paths)) == [200] * len(paths)


def test_grace_times_are_found_where_the_page_says() -> None:
    """The three places that the page names for the time of a stop exist."""
    for key, name in {
        "stop_grace_period": "docker-compose.yml",
        "TimeoutStopSec": UNIT,
        "terminationGracePeriodSeconds": "deploy/kubernetes/statefulset.yaml",
    }.items():
        assert f"`{key}`" in read("docs/deploying.md")
        assert re.search(rf"\b{key}\b", read(name)), name


def test_the_small_model_is_named_wherever_the_large_one_is() -> None:
    """The compose file, the page and the unit's example name the model for small machines."""
    for name in ("docker-compose.yml", "docs/deploying.md", "deploy/systemd/ebbtide.env"):
        assert "qwen2.5:1.5b" in read(name), name
