"""Search, events, playground, review and forgetting in the web view."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from ebbtide_client import Client
from tests.browser.lived import HOSTILE, tell
from tests.browser.visit import Visit, visiting
from tests.support.keys import new_key
from tests.support.process import Daemon, running_daemon

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AGENT = "ann"
MOVED = "I moved to Lisbon in May with my old piano."
SARDINES = "My favourite food is grilled sardines."


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with an agent that has two memories."""
    with running_daemon(tmp_path / "data") as daemon, Client(daemon.url) as client:
        for text in (MOVED, SARDINES):
            tell(client, AGENT, text)
        yield daemon


def test_a_search_shows_the_sentence_who_said_it_and_why(tab: Visit, client: Client) -> None:
    """The question goes into the address; the first result has its words, its speaker and a bar for each signal."""
    tab.open(f"/ui/a/{AGENT}/search")
    tab.page.fill("main input[type=search]", "Where is the piano?")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".hit")
    assert "q=Where" in tab.page.url
    first = tab.page.locator(".hit").first
    assert MOVED in first.inner_text()
    assert "Ann" in first.inner_text()
    assert "living" in first.inner_text()
    shares = first.locator(".shares tr").all_inner_texts()
    assert any(share.startswith("words") for share in shares), shares
    recalled = client.recall(AGENT, query="Where is the piano?", citations=True)
    assert tab.page.inner_text(".model-text").split() == recalled.text.split()
    assert (
        tab.page.locator(".hit .tag a").first.get_attribute("href")
        == f"/ui/a/{AGENT}/m/{recalled.memories[0].id}"
    )


def test_an_association_shows_the_words_that_matched(tab: Visit) -> None:
    """Associative mode follows links from words, and finds the memory by them."""
    tab.open(f"/ui/a/{AGENT}/search?q=piano&mode=associative")
    tab.page.wait_for_selector(".hit")
    first = tab.page.locator(".hit").first.inner_text()
    assert MOVED in first
    assert "Matched words" in first and "piano" in first


def test_events_are_listed_as_they_happen(tab: Visit, client: Client) -> None:
    """A memory that is made while the page is open is listed first, in words, with a link."""
    tab.open(f"/ui/a/{AGENT}/live")
    tab.page.wait_for_selector(".events li")
    tell(client, AGENT, "Clara builds wooden boats in Porto.")
    node = client.list_nodes(AGENT).nodes[-1]
    line = tab.page.locator(".events li", has=tab.page.locator(f"a >> text='{node.id}'")).last
    line.wait_for()
    assert f"was made: {len(node.content)} characters" in line.inner_text()
    tab.page.click("text='Pause'")
    tell(client, AGENT, "Tom paints the boats in blue.")
    tab.page.wait_for_selector("text=/Paused. \\d+ events are new/")
    newest = client.list_nodes(AGENT).nodes[-1]
    assert tab.page.locator(f".events >> text='{newest.id}'").count() == 0


def test_the_events_of_a_restored_agent_begin_with_the_restore(
    tab: Visit, client: Client, tmp_path: Path
) -> None:
    """The events before it are not there to be read, which is no error of the console."""
    tell(client, "moved", "Clara builds wooden boats in Porto.")
    client.backup_agent("moved", tmp_path / "moved.ebb")
    client.restore_agent("moved", tmp_path / "moved.ebb", replace=True)
    tab.open("/ui/a/moved/live")
    tab.page.wait_for_selector(".found aside h2")
    tell(client, "moved", "Tom paints the boats in blue.")
    node = client.list_nodes("moved").nodes[-1]
    tab.page.wait_for_selector(f".events a >> text='{node.id}'")


def test_screens_of_an_agent_that_does_not_exist_say_so(browser: Browser, lived: Daemon) -> None:
    """Nothing can be forgotten there, and the playground says that a message creates the agent."""
    # The browser itself writes each response 404 to the console.
    with visiting(browser, lived.url, is_checked=False, locale="en-US") as visit:
        visit.open("/ui/a/nowhere/forget")
        visit.page.wait_for_selector("main >> text=There is no agent with this name")
        assert visit.page.locator("main .wide").count() == 0
        visit.open("/ui/a/nowhere/play")
        visit.page.wait_for_selector(".turns >> text=There is no agent with this name")
        visit.page.fill("textarea", MOVED)
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector("text=digested: 1 memory")


def test_a_screen_that_cannot_load_says_so_and_loads_when_the_daemon_is_back(
    browser: Browser, tmp_path: Path
) -> None:
    """Each screen that was not open yet shows one message while the daemon is stopped, and then its content."""
    with running_daemon(tmp_path / "data") as daemon:
        with Client(daemon.url) as client:
            tell(client, AGENT, MOVED)
        # The browser itself writes each request that fails to the console.
        with visiting(browser, daemon.url, is_checked=False, locale="en-US") as visit:
            page = visit.page
            errors: list[str] = []
            page.on("pageerror", lambda error: errors.append(str(error)))
            visit.open(f"/ui/a/{AGENT}/live")
            page.wait_for_selector(".events li")
            port = urlsplit(daemon.url).port
            daemon.stop()
            for screen in ("Search", "Playground"):
                page.click(f"nav a >> text={screen}")
                page.wait_for_selector("main > .problem >> text=The connection was lost")
                assert page.locator("main > *").count() == 1
            page.click("nav a >> text=Live")
            page.wait_for_selector("main h1")
            assert page.locator("main h1").count() == 1
            page.click("nav a >> text=Playground")
            page.wait_for_selector("main > .problem >> text=Try again")
            daemon.flags += ("--rest-port", str(port))
            daemon.start()
            page.wait_for_selector("main textarea")
            assert errors == []


def test_what_is_said_in_the_playground_is_remembered(tab: Visit, client: Client) -> None:
    """Turns that are gathered become one batch, and a question shows what a recall returns."""
    tab.open(f"/ui/a/{AGENT}/play")
    tab.page.uncheck("main input[type=checkbox]")
    for text in ("My brother Jonas repairs clocks.", "He lives in Zurich."):
        tab.page.fill("textarea", text)
        tab.page.keyboard.press("Enter")
    tab.page.click("text='Remember 2 turns'")
    tab.page.wait_for_selector("text=digested: 2 memories")
    batch = client.list_batches(AGENT).batches[-1]
    assert batch.message_count == 2
    tab.page.fill("aside input", "Who repairs clocks?")
    tab.page.click("aside button[type=submit]")
    tab.page.wait_for_selector(".model-text >> text=Jonas repairs clocks")


def test_a_conflict_is_settled_and_the_decision_is_undone(tab: Visit, client: Client) -> None:
    """Of two statements one is kept; undoing the ruling brings the conflict back."""
    tab.open(f"/ui/a/{AGENT}/search")
    tab.page.wait_for_selector("nav a >> text=Playground")
    tab.page.wait_for_load_state("networkidle")
    assert tab.page.locator("nav a >> text=Review").count() == 0, "there is nothing to review yet"
    tab.open(f"/ui/a/{AGENT}")
    tab.page.wait_for_selector("html[data-drawn]")
    assert tab.page.locator(".legend a").count() == 0
    for city in ("Vienna", "Graz"):
        client.create_statement(AGENT, subject="Clara", topic="residence", object=city)
    tab.page.click(".legend a >> text=statement")
    tab.page.wait_for_selector(".pair")
    tab.open(f"/ui/a/{AGENT}/search")
    tab.page.click("nav a >> text=Review")
    tab.page.locator(".pair article", has_text="Graz").get_by_text("Keep this one").click()
    tab.page.wait_for_selector(".pair", state="detached")
    assert [one.object for one in client.list_statements(AGENT).statements] == ["Graz"]
    tab.page.click("text='Undo'")
    tab.page.wait_for_selector(".pair")
    assert len(client.list_conflicts(AGENT).conflicts) == 1


def test_forgetting_needs_a_look_and_the_name_and_leaves_a_proof(
    tab: Visit, client: Client, tmp_path: Path
) -> None:
    """Nothing is deleted before the agent's name is typed. Then the words are deleted, and the audit log proves it."""
    tab.open(f"/ui/a/{AGENT}/forget")
    tab.page.fill(".wide", "sardines")
    assert tab.page.locator("button.danger").count() == 0
    tab.page.click("text='Look first'")
    tab.page.wait_for_selector("button.danger")
    assert SARDINES in tab.page.inner_text(".affected >> nth=0")
    assert tab.page.is_disabled("button.danger")
    tab.page.fill(".step input[autocomplete=off]", "an")
    assert tab.page.is_disabled("button.danger")
    assert client.search(AGENT, query="sardines").memories
    tab.page.fill(".step input[autocomplete=off]", AGENT)
    tab.page.click("button.danger")
    tab.page.wait_for_selector("text='4. Proof'")
    assert not any("sardines" in one.content for one in client.search(AGENT, query="sardines").memories)
    with tab.page.expect_download() as download:
        tab.page.click("text='Save the proof'")
    download.value.save_as(tmp_path / "proof.json")
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert proof["agent_id"] == AGENT
    assert proof["proof"]["record_hash"] == client.verify_audit(AGENT).record_hash
    rows = [int(one) for one in tab.page.locator("tbody th").all_inner_texts()]
    assert rows == sorted(rows, reverse=True) and len(rows) > 1
    tab.page.fill("textarea", f"{SARDINES}\n{MOVED}")
    tab.page.click("text='Verify' >> nth=-1")
    tab.page.wait_for_selector(f"li:has-text('{SARDINES}') >> text=deleted, as record")
    tab.page.wait_for_selector(f"li:has-text('{MOVED}') >> text=no record says")


def test_the_audit_log_is_read_by_pages_from_its_end(tab: Visit, client: Client) -> None:
    """The newest records are shown first, and a button reads the page before."""
    agent = "audited"
    client.open_agent(agent)
    for number in range(60):
        client.update_agent(agent, {"decay_rate": 0.3 + number / 1000})
    asked: list[str] = []
    tab.page.on("request", lambda one: asked.append(one.url) if "/audit?" in one.url else None)
    numbers = tab.page.locator(".forget tbody th")
    tab.open(f"/ui/a/{agent}/forget")
    tab.page.wait_for_selector(".forget tbody >> text=created", state="detached")
    tab.page.wait_for_selector(".pages")
    assert [int(one) for one in numbers.all_inner_texts()] == list(range(61, 11, -1))
    tab.page.click(".pages >> text=Older")
    tab.page.wait_for_selector(".pages button:disabled >> text=Older")
    assert [int(one) for one in numbers.all_inner_texts()] == list(range(11, 0, -1))
    tab.page.click(".pages >> text=Newest")
    tab.page.wait_for_selector(".forget tbody th >> text='61'")
    assert len(asked) == 3
    tab.page.set_viewport_size({"width": 390, "height": 844})
    table = tab.page.locator(".forget .table")
    assert table.evaluate("one => one.scrollWidth - one.clientWidth") == 0, "a column is cut off"
    heights = table.locator("tbody tr").evaluate_all("rows => rows.map((one) => one.offsetHeight)")
    assert max(heights) < 120


def test_searching_and_forgetting_need_no_pointer(tab: Visit, client: Client) -> None:
    """The field of a screen has the focus when it opens, and Tab leads to each of its controls."""
    ask(tab, "search", "main input[type=search]", "piano")
    tab.page.wait_for_selector(".hit")
    reach(tab, ".hit .tag a")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector(".panel >> text=piano")
    ask(tab, "forget", ".wide", "sardines")
    tab.page.wait_for_selector("button.danger")
    reach(tab, ".step input[autocomplete=off]")
    tab.page.keyboard.type(AGENT)
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("text='4. Proof'")
    assert not any("sardines" in one.content for one in client.search(AGENT, query="sardines").memories)


def ask(tab: Visit, screen: str, field: str, text: str) -> None:
    """Open a screen, type a text into the field that has the focus, and press Enter."""
    tab.open(f"/ui/a/{AGENT}/{screen}")
    tab.page.wait_for_selector(f"{field}:focus")
    tab.page.keyboard.type(text)
    tab.page.keyboard.press("Enter")


def reach(tab: Visit, selector: str) -> None:
    """Press Tab until an element that fits the selector has the focus."""
    for _ in range(40):
        if tab.page.locator(f"{selector}:focus").count():
            return
        tab.page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {selector}")


def test_hostile_texts_are_text_on_these_screens(tab: Visit, client: Client) -> None:
    """Nothing of a message becomes part of the page, and characters that turn the direction are visible."""
    for text in HOSTILE:
        client.remember(
            "eve",
            [{"role": "user", "speaker": "<b>\u202eEve</b>", "content": text}],
            conversation_id="<i>c</i>",
        )
    client.flush("eve", timeout_ms=30_000, passes=True)
    client.create_statement("eve", subject="<b>Eve</b>", topic="residence", object="<img src=x>")
    for path, shown, title in (
        ("search?q=text+said+frame+link", ".hit", "Search"),
        ("live", ".events li", "Live"),
        ("review", ".claim", "Review"),
        ("forget?node=n1", ".table", "Forget"),
    ):
        tab.open(f"/ui/a/eve/{path}")
        tab.page.wait_for_selector(shown)
        assert tab.page.title() == f"{title} — eve — Ebbtide"
        assert (
            tab.page.locator(
                "main :is(img, script, iframe, math, style, svg, b b, i:not([class]):not([style]))"
            ).count()
            == 0
        )
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", tab.page.inner_text("main"))


def test_in_chinese_no_english_sentence_is_left(browser: Browser, lived: Daemon, client: Client) -> None:
    """The texts of these screens are Chinese."""
    tell(client, "zh", "我五月搬到了里斯本，和妹妹一起住。")
    with visiting(browser, lived.url, locale="zh-CN") as visit:
        for path, shown in (
            ("search?q=里斯本", ".hit"),
            ("search?q=里斯本&mode=associative", ".hit"),
            ("live", ".events li"),
            ("review", ".empty"),
            ("forget", ".table"),
            ("play", ".turns"),
        ):
            visit.open(f"/ui/a/zh/{path}")
            visit.page.wait_for_selector(shown)
            text = re.sub(r"ebbtide [^\n]*", "", visit.page.inner_text("body"))
            assert not re.search(r"[A-Za-z]{2,}(?: [A-Za-z]{2,}){2,}", text), text


def test_a_key_that_may_only_read_sees_which_permission_is_missing(browser: Browser, tmp_path: Path) -> None:
    """Controls that the key does not allow are absent, and the screen names the permission."""
    data = tmp_path / "data"
    owner, reader = new_key(data, "read", "write", "admin"), new_key(data, "read")
    with running_daemon(data, {"ACCESS__AUTHENTICATION": "keys"}) as daemon:
        with Client(daemon.url, api_key=owner) as client:
            client.create_statement(AGENT, subject="Clara", topic="residence", object="Graz")
            client.open_agent("empty")
        # The first requests are refused, which the console reports.
        with visiting(browser, daemon.url, is_checked=False, locale="en-US") as visit:
            for screen, permission in (("forget", "admin"), ("play", "write")):
                visit.open(f"/ui/a/{AGENT}/{screen}")
                visit.page.fill("dialog input[type=password]", reader)
                visit.page.click("dialog button[type=submit]")
                visit.page.wait_for_selector(f"text=This needs the permission {permission}.")
                assert visit.page.locator("main :is(textarea, .wide, button.danger)").count() == 0
            visit.open(f"/ui/a/{AGENT}/review")
            visit.page.fill("dialog input[type=password]", reader)
            visit.page.click("dialog button[type=submit]")
            visit.page.wait_for_selector(".claim")
            assert visit.page.locator(".tools button").all_inner_texts() == ["History"]
            for path in ("/ui/a/empty", "/ui/a/empty/live"):
                visit.open(path)
                visit.page.fill("dialog input[type=password]", reader)
                visit.page.click("dialog button[type=submit]")
                visit.page.wait_for_selector("main >> text=Only a key with the permission write")
                assert visit.page.locator("main :is(.command, a)").count() == 0
            assert visit.elsewhere == []
