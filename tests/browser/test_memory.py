"""The picture of a memory shows what the daemon has, at every pass, live, in both languages and by keyboard."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from ebbtide_client import Client
from tests.browser.lived import HOSTILE, TURNING, as_shown, tell
from tests.browser.visit import Visit, visiting
from tests.support.fading import GARDEN, HARBOUR, KETTLE
from tests.support.keys import new_key
from tests.support.log_servers import free_ports
from tests.support.process import Daemon, running_daemon

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

DRAWN = "html[data-drawn]"
AGENT = "ann"
BOATS = "Clara builds wooden boats in Porto, together with her brother Tom, who paints them."
ALIGNED = "cells => cells.map(one => getComputedStyle(one).textAlign)"
COUNTS = re.compile(r"(\d+) alive.*?(\d+) shortened.*?(\d+) forgotten", re.DOTALL)


def shown(page: Page) -> tuple[int, int, int]:
    """Return how many memories the page says are alive, shortened and forgotten."""
    found = COUNTS.search(page.inner_text(".counts"))
    assert found is not None
    return int(found[1]), int(found[2]), int(found[3])


def at_pass(client: Client, agent: str, last: int) -> tuple[int, int, int]:
    """Return the same counts at a pass, from the events of the agent."""
    passes = 0
    living: dict[str, bool] = {}
    forgotten = 0
    for event in client.watch_events(agent, follow=False):
        if event.kind == "PassCompleted":
            passes = event.pass_number or 0
        elif event.kind == "NodeCreated" and passes <= last:
            living[str(event.node_id)] = False
        elif event.kind == "NodeCompressed" and (event.pass_number or 0) <= last:
            living[str(event.node_id)] = True
        elif event.kind == "NodeForgotten" and (event.pass_number or 0) <= last:
            del living[str(event.node_id)]
            forgotten += 1
    return len(living), sum(living.values()), forgotten


def test_the_counts_are_those_of_the_daemon_at_every_pass(tab: Visit, client: Client) -> None:
    """The slider shows each pass as the events tell it, and returns to the present."""
    tab.open(f"/ui/a/{AGENT}")
    tab.page.wait_for_selector(DRAWN)
    agent = client.get_agent(AGENT)
    now = agent.finished_passes
    assert shown(tab.page) == at_pass(client, AGENT, now)
    assert shown(tab.page)[0] == agent.counts.nodes
    assert shown(tab.page)[2] > 0
    for number in range(now + 1):
        tab.page.fill(".slider input", str(number))
        assert shown(tab.page) == at_pass(client, AGENT, number), f"pass {number}"
    tab.page.fill(".slider input", "0")
    tab.page.click(".slider > button:last-child")
    assert tab.page.locator(".badge").count() == 0


@pytest.mark.parametrize("agent", [AGENT, "林月 (b)'s!*~"])
def test_the_browser_reads_a_memory_while_it_loads_the_view(tab: Visit, client: Client, agent: str) -> None:
    """The header of the page starts both reads, and the view takes their responses instead of reading again."""
    client.open_agent(agent)
    tab.open(f"/ui/a/{quote(agent, safe='')}")
    tab.page.wait_for_selector(".sea, .empty")
    reads = tab.page.evaluate(
        """() => performance.getEntriesByType("resource").flatMap((one) => {
          const found = /agents\\/([^/]+)\\/(map|history)\\?/.exec(one.name);
          return found ? [[decodeURIComponent(found[1]), found[2], one.initiatorType]] : [];
        })"""
    )
    assert sorted(reads) == [[agent, "history", "link"], [agent, "map", "link"]]


def test_the_picture_does_not_wait_for_what_the_key_allows(browser: Browser, lived: Daemon) -> None:
    """The map and the history are requested together with the permissions, and drawn without them."""
    with visiting(browser, lived.url, locale="en-US") as visit:
        held: list[Route] = []
        visit.page.route("**/v1/me", lambda route: held.append(route))
        visit.open(f"/ui/a/{AGENT}")
        visit.page.wait_for_selector(DRAWN)
        assert len(held) == 1
        assert shown(visit.page)[0] > 0
        held[0].continue_()


def foreseen(
    forecast: dict[str, Any], shown_now: tuple[int, int, int], was: set[int], after: int
) -> tuple[int, int, int]:
    """Return the counts after some passes: those of now, changed as a response of the daemon says. `was`: shortened."""
    ended = forecast["forgotten"]
    gone = {one for one, at in zip(ended["id"], ended["after"], strict=True) if at <= after}
    cut = forecast["shortened"]
    shortened = was | {one for one, at in zip(cut["id"], cut["after"], strict=True) if at <= after}
    return shown_now[0] - len(gone), len(shortened - gone), shown_now[2] + len(gone)


def test_beyond_now_the_counts_are_those_of_the_forecast(tab: Visit, client: Client) -> None:
    """The slider continues into the future, says what is assumed, and the panel says when a memory is forgotten."""
    tab.open(f"/ui/a/{AGENT}")
    tab.page.wait_for_selector(DRAWN)
    now = client.get_agent(AGENT).finished_passes
    today = shown(tab.page)
    nodes = client.list_nodes(AGENT).nodes
    was = {int(one.id[1:]) for one in nodes if len(one.content) < one.original_length}
    with tab.page.expect_response("**/forecast") as response:
        tab.page.fill(".slider input", str(now + 1))
    forecast = response.value.json()
    assert forecast["pass_number"] == now
    tab.page.wait_for_selector(".forecast-note >> text=people talk about other things only")
    assert "0 in focus" in (tab.page.get_attribute("canvas", "aria-label") or "")
    assert forecast["forgotten"]["id"], "a forecast in which nothing happens tests nothing"
    reach = int(tab.page.get_attribute(".slider input", "max") or 0) - now
    assert 1 < reach <= forecast["passes"]
    for after in range(1, reach + 1):
        tab.page.fill(".slider input", str(now + after))
        assert shown(tab.page) == foreseen(forecast, today, was, after), f"in {after} passes"
        assert f"in {after} pass" in tab.page.inner_text(".badge")
    doomed = dict(zip(forecast["forgotten"]["id"], forecast["forgotten"]["after"], strict=True))
    first = min(doomed, key=lambda one: doomed[one])
    tab.page.check(".legend input")
    row = tab.page.locator(f"tr:has(a[href$='/m/n{first}'])")
    row.locator("td.said.quiet").wait_for()
    words = next(one.content for one in nodes if one.id == f"n{first}")
    tab.page.wait_for_selector(f"tr:has(a[href$='/m/n{first}']) >> text={words[:20]}")
    assert "forgotten" in row.inner_text()
    tab.page.uncheck(".legend input")
    tab.page.click(".badge")
    assert shown(tab.page) == today
    tab.open(f"/ui/a/{AGENT}/m/n{first}")
    tab.page.wait_for_selector(".future >> text=/Forgotten in about \\d+ pass/")
    tab.page.wait_for_selector(".life-chart path.dashed", state="attached")


def test_the_slider_ends_where_the_forecast_does(browser: Browser, lived: Daemon, client: Client) -> None:
    """A forecast that ended early, because its time was over, says nothing of later passes, so these are not shown."""

    def end_early(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "passes": 3})

    with visiting(browser, lived.url, locale="en-US") as visit:
        visit.page.route("**/forecast", end_early)
        visit.open(f"/ui/a/{AGENT}")
        visit.page.wait_for_selector(DRAWN)
        now = client.get_agent(AGENT).finished_passes
        visit.page.fill(".slider input", str(now + 9))
        visit.page.wait_for_selector(f".slider input[max='{now + 3}']")
        assert "in 3 passes" in visit.page.inner_text(".badge")
        visit.page.click(".badge")
        assert visit.page.locator(".badge").count() == 0


@pytest.mark.parametrize(
    ("status", "reason", "said"),
    [
        (404, "ROUTE_NOT_FOUND", "This version of the daemon makes none."),
        (403, "MISSING_SCOPE", "Your key allows"),
    ],
)
def test_without_a_forecast_the_picture_stays_and_says_why(
    browser: Browser, lived: Daemon, status: int, reason: str, said: str
) -> None:
    """An old daemon, too many memories and a missing permission leave the counts of now on the screen."""
    body = {"error": {"code": status, "status": "", "reason": reason, "message": "no"}}
    # The browser writes a failed request to the console.
    with visiting(browser, lived.url, is_checked=False, locale="en-US") as visit:
        asked: list[Route] = []

        def refuse(route: Route) -> None:
            asked.append(route)
            route.fulfill(status=status, content_type="application/json", body=json.dumps(body))

        visit.page.route("**/forecast", refuse)
        visit.open(f"/ui/a/{AGENT}")
        visit.page.wait_for_selector(DRAWN)
        today = shown(visit.page)
        last = visit.page.get_attribute(".slider input", "max")
        assert last is not None
        visit.page.fill(".slider input", last)
        visit.page.wait_for_selector(f".forecast-note >> text={said}")
        assert shown(visit.page) == today
        assert len(asked) == 1
        visit.page.click(".forecast-note button")
        visit.page.wait_for_selector(f".forecast-note >> text={said}")
        assert len(asked) == 2


def test_a_pointer_that_rests_on_a_dot_reads_its_links_once(tab: Visit) -> None:
    """Moving over dots reads nothing; resting reads the memory once, and again only after it has changed."""
    tab.open(f"/ui/a/{AGENT}")
    tab.page.wait_for_selector(DRAWN)
    asked: list[str] = []
    # On a busy machine a moving pointer may rest long enough to begin a request, which the next move aborts.
    tab.page.on(
        "requestfinished",
        lambda one: asked.append(one.url) if re.search(r"ids=n\d+&details", one.url) else None,
    )
    box = tab.page.locator("canvas").bounding_box()
    assert box is not None
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    places = [(middle[0] + x, middle[1] + y) for x in range(-90, 91, 15) for y in range(-90, 91, 15)]
    for place in places:
        tab.page.mouse.move(*place)
    crossed = len(asked)
    assert crossed <= len(places) / 10, "a moving pointer reads almost nothing"
    for place in places:
        tab.page.mouse.move(*place)
        if tab.page.locator("canvas.over").count():
            tab.page.wait_for_timeout(400)
            if asked:
                break
    assert crossed <= len(asked) <= crossed + 1 and asked
    tab.page.mouse.move(box["x"] + 2, box["y"] + 2)
    tab.page.mouse.move(*place)
    tab.page.wait_for_timeout(400)
    assert len(asked) == len(set(asked)), "a memory was read twice"


def test_an_agent_that_does_not_exist_leads_to_the_list(browser: Browser, lived: Daemon) -> None:
    """The words are for people; the reason and the request are among the details."""
    with visiting(browser, lived.url, is_checked=False, locale="en-US") as visit:
        visit.open("/ui/a/nobody")
        visit.page.wait_for_selector(".problem >> text=There is no agent with this name")
        text = visit.page.inner_text(".problem")
        assert "GET" not in text and "AGENT_NOT_FOUND" not in text
        visit.page.click(".problem summary")
        assert "AGENT_NOT_FOUND" in visit.page.inner_text(".problem")
        visit.page.click(".problem a")
        visit.page.wait_for_selector("main h1 >> text=Agents")


def names_that_once_knew(client: Client, agent: str) -> list[str]:
    """Make an agent whose memory n1 is forgotten, and return the names that still point at it."""
    client.open_agent(agent, parameters={"decay_rate": 0.8, "focus_limit": 1})
    for text in (BOATS, KETTLE, HARBOUR, GARDEN):
        tell(client, agent, text)
    client.compress(agent, passes=18)
    client.flush(agent, passes=True, timeout_ms=20_000)
    names = {node.id: node.phrase for node in client.list_nodes(agent, kinds=["entity"]).nodes}
    found = [
        names[link.source]
        for link in client.every_link(agent)
        if link.target == "n1" and link.source in names
    ]
    assert found and any(link.dangling for link in client.every_link(agent) if link.target == "n1")
    return found


def test_the_tour_shows_a_shortened_memory_and_what_a_recall_says_of_a_forgotten_one(
    tab: Visit, client: Client
) -> None:
    """The four steps show examples from the agent. A click on a dot does not end the tour, Esc does."""
    names = names_that_once_knew(client, "once")
    read: list[str] = []

    def none_at_first(route: Route) -> None:
        response = route.fetch()
        links = (
            response.json()["links"] if read else {"source": [], "target": [], "relation": [], "strength": []}
        )
        read.append(route.request.url)
        route.fulfill(response=response, json={**response.json(), "links": links})

    tab.page.route(re.compile("/map\\?.*links=all"), none_at_first)
    tab.open("/ui/a/once?tour=1")
    tab.page.wait_for_selector(DRAWN)
    tab.page.wait_for_selector(".tour >> text=Each dot is a memory")
    tab.page.focus("canvas")
    tab.page.keyboard.press("End")
    tab.page.wait_for_selector(".panel h2")
    for said in ("compression pass", "This memory was shortened"):
        tab.page.click(".tour .main")
        tab.page.wait_for_selector(f".tour >> text={said}")
    tab.page.wait_for_selector(".panel .changes >> text=shortened from")
    tab.page.click(".tour .main")
    tab.page.wait_for_selector(".tour >> text=A hollow ring")
    assert tab.page.locator(".tour q").count() == 0
    tell(client, "once", "The postman rings twice.")
    tab.page.wait_for_selector(".tour q >> text=I once knew")
    tab.page.wait_for_selector(".panel >> text=There was something here")
    assert "/m/n1?" in tab.page.url
    assert tab.page.inner_text(".gone li >> nth=0") in names
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_selector(".tour", state="detached")


def test_the_last_step_of_the_tour_waits_for_the_first_forgotten_memory(tab: Visit, client: Client) -> None:
    """It says that none is forgotten yet, and continues by itself."""
    client.open_agent("young", parameters={"decay_rate": 0.8, "focus_limit": 1})
    tell(client, "young", BOATS)
    tab.open("/ui/a/young?tour=4")
    tab.page.wait_for_selector(".tour >> text=No memory is forgotten yet")
    for text in (KETTLE, HARBOUR, GARDEN):
        tell(client, "young", text)
    client.compress("young", passes=18)
    tab.page.wait_for_selector(".tour >> text=A hollow ring")
    tab.page.wait_for_selector(".panel >> text=There was something here")


def test_changes_are_shown_live(browser: Browser, lived: Daemon, client: Client) -> None:
    """A new memory appears on an open page."""
    tell(client, "live", "The lighthouse keeper writes long letters to his daughter every winter.")
    with visiting(browser, lived.url, locale="en-US") as visit:
        visit.open("/ui/a/live")
        visit.page.wait_for_selector(DRAWN)
        before = shown(visit.page)[0]
        tell(client, "live", "A gardener plants tulips behind the station before the first frost.")
        count = client.get_agent("live").counts.nodes
        assert count > before
        visit.page.wait_for_selector(f".counts >> text={count} alive")


def test_the_lamp_is_on_while_the_stream_is_open(browser: Browser, lived: Daemon, client: Client) -> None:
    """It is off until the daemon has opened the stream. A second tab shows the same without a stream of its own."""
    tell(client, "lamp", "The postman rings twice.")
    asked: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(route)
        if len(asked) > 1:
            route.continue_()

    with visiting(browser, lived.url, locale="en-US") as visit:
        visit.page.context.route("**/events?*", hold)
        visit.open("/ui/a/lamp")
        visit.page.wait_for_selector(DRAWN)
        visit.page.wait_for_selector(".lamp.connecting")
        # A stream that does not open for a while is not live.
        visit.page.wait_for_timeout(2_000)
        assert visit.page.locator(".lamp.connecting").count() == 1
        asked[0].continue_()
        visit.page.wait_for_selector(".lamp.live")
        second = Visit(visit.page.context.new_page(), lived.url)
        second.open("/ui/a/lamp")
        second.page.wait_for_selector(".lamp.live")
        assert len(asked) == 1
        visit.page.close()
        tell(client, "lamp", "The postman brings a parcel from Oslo.")
        count = client.get_agent("lamp").counts.nodes
        second.page.wait_for_selector(f".counts >> text={count} alive")
        second.page.wait_for_selector(".lamp.live")
        assert len(asked) == 2
        # The screen that is left says nothing more to the other tabs, and its lamp is off.
        second.page.click("nav a >> text=Search")
        second.page.wait_for_selector(".ask")
        assert second.page.locator(".lamp").count() == 0
        second.page.click("nav a >> text=Live")
        second.page.wait_for_selector(".lamp.live")


@pytest.mark.full
@pytest.mark.timeout(300)
def test_an_open_page_continues_after_a_restart_of_the_daemon(browser: Browser, tmp_path: Path) -> None:
    """It says that it is not live meanwhile, connects by itself, and shows what was remembered since."""
    daemon = Daemon(tmp_path / "data")
    daemon.flags += ("--rest-port", str(free_ports(1)[0]))
    try:
        daemon.start()
        with Client(daemon.url) as client:
            tell(client, "live", "The lighthouse keeper writes long letters to his daughter every winter.")
        # Chromium reports the refused connections in the console.
        with visiting(browser, daemon.url, locale="en-US", is_checked=False) as visit:
            visit.open("/ui/a/live")
            visit.page.wait_for_selector(".lamp.live")
            daemon.stop()
            visit.page.wait_for_selector(".lamp.connecting")
            before = shown(visit.page)[0]
            daemon.start()
            with Client(daemon.url) as client:
                tell(client, "live", "A gardener plants tulips behind the station before the first frost.")
                count = client.get_agent("live").counts.nodes
            assert count > before
            # The page tries again every 10 s at the latest, and at once when someone returns to it.
            visit.page.evaluate("() => { dispatchEvent(new Event('focus')) }")
            visit.page.wait_for_selector(f".counts >> text={count} alive")
            visit.page.wait_for_selector(".lamp.live")
            assert not visit.elsewhere
            assert all("Failed to load resource: net::" in message for message in visit.messages), (
                visit.messages
            )
    finally:
        daemon.close()


def test_one_life_shows_what_is_left_and_what_was_said(tab: Visit, client: Client) -> None:
    """The panel has the present content, the first one, and each shortening."""
    nodes = client.list_nodes(AGENT).nodes
    one = next(node for node in nodes if node.rewrites)
    detail = client.get_node(AGENT, one.id)
    tab.open(f"/ui/a/{AGENT}/m/{one.id}")
    tab.page.wait_for_selector(".panel .present")
    text = tab.page.inner_text(".panel")
    assert one.content in text
    assert detail.first_content is not None and detail.first_content in text
    for rewrite in one.rewrites:
        assert f"from {rewrite.length_before} to {rewrite.length_after}" in text


def test_a_forgotten_memory_says_that_there_was_something(tab: Visit, client: Client) -> None:
    """Its page has the pass in which it was forgotten, and what still points at it."""
    events = list(client.watch_events(AGENT, follow=False))
    gone = next(event for event in events if event.kind == "NodeForgotten")
    known = {link.source for link in client.every_link(AGENT) if link.target == gone.node_id}
    tab.open(f"/ui/a/{AGENT}/m/{gone.node_id}")
    tab.page.wait_for_selector(".panel .gone")
    text = tab.page.inner_text(".panel")
    assert "There was something here" in text
    assert f"forgotten in pass {gone.pass_number}" in text
    for source in known:
        tab.page.wait_for_selector(f".gone a[href$='/m/{source}']")


def test_a_memory_that_is_forgotten_after_the_picture_was_read_has_a_page(
    browser: Browser, lived: Daemon, client: Client
) -> None:
    """Its dot may be chosen before the picture knows. The panel says when it was forgotten, and the console nothing."""
    names_that_once_knew(client, "late")
    with visiting(browser, lived.url, locale="en-US") as visit:

        def as_before(route: Route) -> None:
            # The picture is that of a moment at which every memory was alive.
            response = route.fetch()
            body = response.json()
            if "/history" in route.request.url:
                body["forgotten"] = {"id": [], "pass_number": []}
            else:
                row = {"id": 1, "kind": 0, "importance": 1.0, "length": 9, "original_length": 9}
                body["kinds"] = ["episode"]
                body["nodes"] = {name: [row.get(name, 0)] for name in body["nodes"]}
            route.fulfill(response=response, json=body)

        visit.page.route(re.compile(r"/late/(map|history)\b"), as_before)
        visit.page.route(
            "**/late/events*", lambda route: route.fulfill(content_type="text/event-stream", body="")
        )
        visit.open("/ui/a/late")
        visit.page.wait_for_selector(DRAWN)
        visit.page.focus("canvas")
        visit.page.keyboard.press("End")
        visit.page.wait_for_selector(".panel .gone >> text=There was something here")
        visit.page.wait_for_selector(".changes >> text=/forgotten in pass \\d+/")
        assert "/m/n1" in visit.page.url
        client.delete_agent("late")


@pytest.mark.parametrize("node", ["n999", "n", "nothing"])
def test_a_memory_that_never_was_has_a_page(tab: Visit, node: str) -> None:
    """An address with a number or a word that is no memory says so, without an error in the console."""
    tab.open(f"/ui/a/{AGENT}/m/{node}")
    tab.page.wait_for_selector(".panel .gone >> text=There is no such memory any more")


def test_what_points_at_a_forgotten_memory_is_read_from_all_pages(
    browser: Browser, lived: Daemon, client: Client
) -> None:
    """A map of many links has several pages, and any of them may have the links to the memory."""
    names = names_that_once_knew(client, "pages")

    def split(route: Route) -> None:
        if "page_token=" in route.request.url:
            route.continue_(url=re.sub("&page_token=[^&]*", "", route.request.url))
            return
        response = route.fetch()
        none: dict[str, list[int]] = {"source": [], "target": [], "relation": [], "strength": []}
        route.fulfill(response=response, json={**response.json(), "links": none, "next_page_token": "next"})

    with visiting(browser, lived.url, locale="en-US") as visit:
        visit.page.route(re.compile("/map\\?.*links=all"), split)
        visit.open("/ui/a/pages/m/n1")
        for name in names:
            visit.page.wait_for_selector(f".gone li >> text='{name}'")


def test_a_chosen_name_is_joined_with_its_memories(tab: Visit, client: Client) -> None:
    """A name is drawn outside the spiral. The legend explains what is drawn, and no link of a memory is."""
    tell(client, "names", "I moved to Lisbon in May.")
    name = next(one for one in client.list_nodes("names", kinds=["entity"]).nodes if one.phrase == "Lisbon")
    tab.open(f"/ui/a/names/m/{name.id}")
    tab.page.wait_for_selector(".panel >> text=Mentioned in 1 memory")
    tab.page.wait_for_selector(".legend .dot.name")
    assert tab.page.locator(".legend .chord").count() == 0


def test_arrow_keys_walk_the_spiral_and_a_table_shows_the_same(tab: Visit, client: Client) -> None:
    """Without a pointer: End chooses the newest memory, the arrows its neighbours; the table has every memory."""
    tab.open(f"/ui/a/{AGENT}")
    tab.page.wait_for_selector(DRAWN)
    tab.page.focus("canvas")
    tab.page.keyboard.press("End")
    tab.page.wait_for_selector(".panel h2")
    last = tab.page.url
    tab.page.focus("canvas")
    tab.page.keyboard.press("ArrowLeft")
    tab.page.wait_for_url(lambda url: url != last)
    tab.page.focus("canvas")
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_selector(".panel", state="detached")
    tab.page.check(".legend input")
    alive, _, forgotten = shown(tab.page)
    assert tab.page.locator("tbody tr").count() == alive + forgotten
    for node in client.list_nodes(AGENT).nodes:
        tab.page.wait_for_selector(f"tbody >> text={node.content}")


def test_the_table_has_what_the_filter_finds(tab: Visit, client: Client) -> None:
    """The filter applies to the table too. Where a page has no rows, as in the past, the last page is shown."""
    trees = [f"Tree number {number} in the orchard is {number} years old." for number in range(2, 62)]
    tell(client, "orchard", "A lantern hangs in the barn.")
    client.remember("orchard", [{"role": "user", "content": text} for text in trees])
    client.flush("orchard", timeout_ms=30_000, passes=True)
    rows = tab.page.locator("tbody tr")
    tab.open("/ui/a/orchard")
    tab.page.wait_for_selector(DRAWN)
    tab.page.check(".legend input")
    tab.page.click(".pages button >> text=Next")
    tab.page.wait_for_selector(".pages >> text=51–")
    tab.page.fill(".slider input", "0")
    tab.page.wait_for_selector("tbody tr:nth-child(2)", state="detached")
    assert rows.count() == 1
    tab.page.click(".badge")
    tab.page.fill(".filter", "lantern")
    tab.page.wait_for_selector(".counts >> text=1 memory found")
    assert "lantern" in rows.first.inner_text() and rows.count() == 1
    while client.search("orchard", query="lantern").unembedded_messages:
        tab.page.wait_for_timeout(100)
    assert client.search("orchard", query="qqqzzz").memories, "a search ranks by meaning too"
    tab.page.fill(".filter", "qqqzzz")
    tab.page.wait_for_selector(".counts >> text=Nothing found")
    tab.page.fill(".filter", "lanterns")
    tab.page.wait_for_selector(".counts >> text=1 memory found")
    right = [tab.page.locator(f"{row} > *").evaluate_all(ALIGNED) for row in ("thead tr", "tbody tr")]
    assert right[0] == right[1]


def test_on_a_phone_a_chosen_memory_is_read_below_its_dot(
    browser: Browser, lived: Daemon, client: Client
) -> None:
    """The panel covers the lower part of the page at once, so that dot and words are seen together."""
    size = {"width": 390, "height": 844}
    with visiting(browser, lived.url, locale="en-US", viewport=size) as visit:
        visit.open(f"/ui/a/{AGENT}")
        visit.page.wait_for_selector(DRAWN)
        visit.page.focus("canvas")
        visit.page.keyboard.press("End")
        visit.page.wait_for_selector(".panel .present")
        words, canvas = (visit.page.locator(name).bounding_box() for name in (".panel .present", "canvas"))
        assert words is not None and canvas is not None
        assert canvas["y"] + canvas["height"] / 2 < words["y"]
        assert words["y"] + words["height"] < size["height"]
        visit.page.wait_for_selector(f".panel h2 >> text='Memory {client.list_nodes(AGENT).nodes[-1].id}'")


def test_beyond_the_listed_agents_the_switch_leads_to_all(
    browser: Browser, lived: Daemon, client: Client
) -> None:
    """The switch in the header lists a page of agents. If there are more, its last entry is the list of all."""
    client.open_agent("zoe")

    def continued(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "next_page_token": "more"})

    with visiting(browser, lived.url, locale="en-US") as visit:
        visit.open(f"/ui/a/{AGENT}")
        visit.page.wait_for_selector("select.agent option >> nth=1", state="attached")
        assert visit.page.locator("select.agent option[value='']").count() == 0
        visit.page.route("**/v1/agents?*", continued)
        visit.page.reload()
        visit.page.wait_for_selector("select.agent option[value='']", state="attached")
        # The list that follows asks every 5 s, and a request that is under way would fail at the end of the test.
        visit.page.unroute_all(behavior="wait")
        visit.page.select_option("select.agent", "")
        visit.page.wait_for_selector("main h1 >> text=Agents")


@pytest.mark.parametrize("agent", ["林月", "v1.0", "a_b-c"])
def test_every_id_of_an_agent_has_a_page(tab: Visit, client: Client, agent: str) -> None:
    """Ids are escaped in addresses, and shown as they are."""
    tell(client, agent, "The ferry leaves the harbour at seven in the morning.")
    tab.open("/ui/")
    tab.page.click(f"a >> text='{agent}'")
    tab.page.wait_for_selector(DRAWN)
    assert tab.page.input_value("select.agent") == agent


def test_hostile_memories_are_text(browser: Browser, lived: Daemon, client: Client) -> None:
    """In the picture, the table and the panel nothing of a memory becomes part of the page."""
    agent = "eve\u202e"
    for text in HOSTILE:
        client.remember(agent, [{"role": "user", "speaker": "<b>\u202eEve</b>", "content": text}])
    client.flush(agent, timeout_ms=30_000, passes=True)
    nodes = client.list_nodes(agent).nodes
    assert nodes
    with visiting(browser, lived.url, locale="en-US") as visit:
        visit.open("/ui/")
        visit.page.click(f"a >> text={as_shown(agent)}")
        visit.page.wait_for_selector(DRAWN)
        visit.page.check(".legend input")
        for node in nodes:
            visit.page.click(f"tbody a >> text='{node.id}'")
            visit.page.wait_for_selector(f".panel h2 >> text='Memory {node.id}'")
            visit.page.wait_for_selector(".panel .present")
            assert as_shown(node.content) in visit.page.inner_text(".panel .present")
            assert not TURNING.search(visit.page.inner_text("body"))
        assert visit.page.title().endswith(f" — {as_shown(agent)} — Ebbtide")
        assert visit.page.locator("main :is(img, script, iframe, math, style, b b)").count() == 0


def test_in_chinese_no_english_sentence_is_left(browser: Browser, lived: Daemon, client: Client) -> None:
    """On the screens of this file, what the view itself says is Chinese. The memories stay as they are."""
    tell(client, "zh", "我五月搬到了里斯本，和妹妹一起住。")
    node = client.list_nodes("zh").nodes[0]
    with visiting(browser, lived.url, locale="zh-CN") as visit:
        for path in ("/ui/", "/ui/a/zh", f"/ui/a/zh/m/{node.id}", "/ui/a/zh?tour=1", "/ui/nowhere"):
            visit.open(path)
            visit.page.wait_for_selector("main h1", state="attached")
            visit.page.wait_for_load_state("networkidle" if path == "/ui/" else "load")
            for text in visit.page.locator("body").all_inner_texts():
                assert not re.search(r"[A-Za-z]{2,}(?: [A-Za-z]{2,}){2,}", text), text
        visit.open(f"/ui/a/{AGENT}/m/n3")
        visit.page.wait_for_selector(".links summary")
        links = visit.page.locator(".links li .quiet").all_text_contents()
        assert links and not re.search("[a-z]", "".join(links)), links


@pytest.mark.parametrize(
    ("reason", "said"),
    [("STORE_UNAVAILABLE", "智能体的文件无法读写"), ("NEW_IN_A_LATER_VERSION", "no room for it")],
)
def test_an_error_is_said_in_chinese_with_the_words_of_the_daemon_behind_it(
    browser: Browser, lived: Daemon, reason: str, said: str
) -> None:
    """The sentence follows from the reason. The details have the message, which is shown itself without a sentence."""
    body = {
        "error": {"code": 500, "status": "", "reason": reason, "message": "There is no room for it here."}
    }
    # The browser writes a failed request to the console.
    with visiting(browser, lived.url, is_checked=False, locale="zh-CN") as visit:
        visit.page.route(
            "**/map?*",
            lambda route: route.fulfill(status=500, content_type="application/json", body=json.dumps(body)),
        )
        visit.open(f"/ui/a/{AGENT}")
        visit.page.wait_for_selector(f".problem >> text={said}")
        if reason == "STORE_UNAVAILABLE":
            assert "room" not in visit.page.inner_text(".problem")
            visit.page.click(".problem summary")
            visit.page.wait_for_selector(".problem details [lang=en] >> text=no room for it")
            assert reason in visit.page.inner_text(".problem")
            visit.page.click(".bar button[lang=en]")
            visit.page.wait_for_selector(".problem > .said >> text=no room for it")
        visit.page.close()


def test_a_key_that_may_only_read_has_no_button_that_writes(browser: Browser, tmp_path: Any) -> None:
    """The dialog asks for a key, refuses a wrong one, and the panel then has no control that writes."""
    data = tmp_path / "data"
    owner, reader = new_key(data, "read", "write", "admin"), new_key(data, "read")
    with running_daemon(data, {"ACCESS__AUTHENTICATION": "keys"}) as daemon:
        with Client(daemon.url, api_key=owner) as client:
            tell(client, AGENT, "The ferry leaves the harbour at seven in the morning.")
            node = client.list_nodes(AGENT).nodes[0]
        with visiting(browser, daemon.url, is_checked=False, locale="en-US") as visit:
            visit.open(f"/ui/a/{AGENT}/m/{node.id}")
            visit.page.wait_for_selector("dialog[open]")
            assert visit.page.locator("main *").count() == 0
            for _ in range(3):
                visit.page.keyboard.press("Escape")
            visit.page.fill("dialog input[type=password]", "not-a-key")
            visit.page.click("dialog button[type=submit]")
            visit.page.wait_for_selector("dialog .bad")
            visit.page.fill("dialog input[type=password]", reader)
            visit.page.click("dialog button[type=submit]")
            visit.page.wait_for_selector(".panel .present")
            visit.page.set_viewport_size({"width": 390, "height": 844})
            visit.page.click(".menu summary")
            menu = visit.page.locator(".menu > div").bounding_box()
            assert menu is not None and menu["x"] >= 0 and menu["x"] + menu["width"] <= 390
            assert node.content in visit.page.inner_text(".panel")
            assert visit.page.locator(".panel .actions").count() == 0
            assert visit.elsewhere == []
            stored = visit.page.evaluate(
                "() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
            )
            assert reader not in stored
