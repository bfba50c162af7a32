"""docs/metrics.md, the dashboard and the alerts name exactly the metrics of a running daemon."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry

from ebbtide.errors import FAMILIES
from ebbtide.metrics import ClusterMetrics, Metrics
from ebbtide.rest.routes import routes
from ebbtide.rpc.servicer import VERBS
from ebbtide.verbs.metrics import get_metrics
from tests.support.in_process import ask, service_in, settle, tell
from tests.tidy.pages import ROOT, anchors, read, rows

DASHBOARD = ROOT / "deploy" / "grafana" / "ebbtide.json"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
SCRAPE = ROOT / "deploy" / "prometheus" / "prometheus.yml"

ROUTES: Any = routes()

OF_A_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")


def families(registry: CollectorRegistry) -> dict[str, tuple[str, str, str]]:
    """Return the type, the labels and the help of every Ebbtide metric in a registry."""
    found = {}
    for collector in registry._collector_to_names:
        labels = ", ".join(f"`{name}`" for name in getattr(collector, "_labelnames", ()))
        for family in collector.describe() if hasattr(collector, "describe") else ():
            name = family.name + ("_total" if family.type == "counter" else "")
            found[name] = (family.type, labels, family.documentation)
    return found


ALONE = families(Metrics().registry)
IN_A_CLUSTER = families(ClusterMetrics().registry)


def documented(heading: str) -> dict[str, tuple[str, str, str]]:
    """Return the type, the labels and the meaning of the metrics in a table of the page."""
    table = rows(read("docs/metrics.md"), heading)
    return {name.strip("`"): (kind, labels, meaning) for name, kind, labels, meaning in table}


def test_the_page_has_every_metric() -> None:
    """The page lists each metric with its type, its labels and its meaning, and no other metric."""
    assert documented("## Metrics of Ebbtide") == ALONE
    assert documented("## Metrics of a cluster") == IN_A_CLUSTER


async def test_a_daemon_without_a_cluster_has_none_of_its_metrics(tmp_path: Path) -> None:
    """Their names begin with `ebbtide_cluster_`, and a scrape has none of them."""
    assert all(name.startswith("ebbtide_cluster_") for name in IN_A_CLUSTER)
    assert "ebbtide_cluster_" not in await scraped(tmp_path)


async def scraped(path: Path) -> str:
    """Return the metrics of a daemon after a few requests."""
    async with service_in(path) as service:
        await tell(service, "ann", "I moved to Lisbon in May.")
        await settle(service, "ann")
        await ask(service, "ann", "Lisbon")
        return (await get_metrics(service)).decode()


def names_in(text: str) -> set[str]:
    """Return the names of Ebbtide's and the process's metrics in an expression."""
    return set(re.findall(r"\b((?:ebbtide|process)_[a-z_]+)\b", text))


async def test_the_dashboard_and_the_alerts_find_their_metrics(tmp_path: Path) -> None:
    """A daemon's /metrics contains every metric that an expression names, with the labels that it selects by."""
    text = await scraped(tmp_path)
    there = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)) | set(IN_A_CLUSTER)
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [variable["query"] for variable in dashboard["templating"]["list"]]
    rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    asked += [rule["expr"] for rule in rules]
    assert len(asked) > 30
    known = ALONE | IN_A_CLUSTER
    for expression in asked:
        for name in names_in(expression):
            assert name in there or OF_A_HISTOGRAM.sub("", name) in there, name
            for inside in re.findall(rf"\b{name}\{{([^}}]*)\}}", expression):
                labels = set(re.findall(r"(\w+)\s*[=!]", inside)) - {"instance", "job"}
                own = known.get(OF_A_HISTOGRAM.sub("", name), ("", "", ""))[1]
                assert labels <= set(re.findall(r"`(\w+)`", own)), expression


def test_outcomes_that_alerts_name_exist() -> None:
    """Label values in alerts are values that the daemon uses."""
    words: Any = re.findall(r'outcome=~?"([^"]+)"', ALERTS.read_text(encoding="utf-8"))
    named = {word for group in words for word in group.split("|")}
    assert named <= {*FAMILIES, "ok", "cancelled", "accepted", "digested", "parked", "retried"}


def test_every_alert_says_what_to_do() -> None:
    """Each alert has a heading of its own in operating.md, to which its annotation links."""
    rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    known = anchors(read("docs/operating.md"))
    for rule in rules:
        assert rule["annotations"]["runbook"] == f"docs/operating.md#{rule['alert'].lower()}"
        assert rule["alert"].lower() in known
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_the_scrape_matches_the_daemon() -> None:
    """Path and port are the daemon's, and the rules file exists."""
    config = yaml.safe_load(SCRAPE.read_text(encoding="utf-8"))
    [job] = config["scrape_configs"]
    assert job["metrics_path"] in {route.path for route in ROUTES}
    assert job["static_configs"] == [{"targets": ["127.0.0.1:8420"]}]
    assert [(SCRAPE.parent / name).exists() for name in config["rule_files"]] == [True]


def test_both_transports_call_a_verb_the_same() -> None:
    """Metrics use the same operation names for gRPC as for the routes."""
    named = {route.name for route in ROUTES if route.path.startswith("/v1/")}
    assert named == set(VERBS.values())
