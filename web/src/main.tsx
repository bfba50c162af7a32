// The shell: header, key dialog, and the screen of the present address.
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { KeyDialog, KeyMenu } from "./parts/key";
import { later } from "./parts/later";
import { Problem, useLoad } from "./parts/load";
import { lamp } from "./live";
import { STATEMENT_STATES } from "./reading";
import { follow, go, pathOf, place } from "./router";
import { Agents } from "./screens/agents";
import { Memory } from "./screens/memory";
import { askWhoIAm, client, me, needsKey } from "./session";
import { language, theme } from "./settings";
import { visible } from "./text";
import { words } from "./words";
import "./style.css";

// The memory is what most people come for. The other screens load when they are opened.
const Search = later(() => import("./screens/search"));
const Live = later(() => import("./screens/live"));
const Forget = later(() => import("./screens/forget"));
const Play = later(() => import("./screens/play"));
const Review = later(() => import("./screens/review"));

const SCREENS = { search: Search, live: Live, forget: Forget, play: Play, review: Review };
const NEXT_THEME = { system: "light", light: "dark", dark: "system" } as const;
const THEME_SIGN = { system: "◐", light: "☀", dark: "☾" } as const;

// A screen reads its data while the daemon still says who asks. Only where a key is missing it is not shown.
function View() {
  const who = useLoad(askWhoIAm, []);
  const agent = place.value.segments[0] === "a" ? place.value.segments[1] : undefined;
  const title = [titleOf(), ...(agent === undefined ? [] : [visible(agent)]), "Ebbtide"].join(" — ");
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <>
      <a class="skip" href="#content">{words.value.skip}</a>
      <Header agent={agent} />
      <main id="content" tabIndex={-1}>
        {me.value === undefined && (needsKey.value || who.error !== undefined)
          ? !needsKey.value && <Problem error={who.error} onRetry={who.reload} />
          : <Screen />}
      </main>
      <KeyDialog />
    </>
  );
}

function titleOf(): string {
  const t = words.value;
  const [first, agent, screen = "m", node] = place.value.segments;
  if (first === undefined) return t.agents;
  const titles: Record<string, string> = { m: node === undefined ? t.memory : t.oneLife(visible(node)), search: t.search, live: t.live, forget: t.forget, play: t.playground, review: t.review };
  return (first === "a" && agent !== undefined && titles[screen]) || t.notFoundTitle;
}

function Screen() {
  const [first, agent, screen, node] = place.value.segments;
  if (first === undefined) return <Agents />;
  if (first === "a" && agent !== undefined) {
    if (screen === undefined || (screen === "m" && node !== undefined)) return <Memory key={agent} agent={agent} node={node} />;
    const Chosen = SCREENS[screen as keyof typeof SCREENS];
    if (Chosen) return <Chosen key={`${agent}/${screen}`} agent={agent} />;
  }
  const t = words.value;
  return (
    <div class="empty">
      <h1>{t.notFoundTitle}</h1>
      <p><a href={pathOf([])}>{t.notFoundHint}</a></p>
    </div>
  );
}

function Header({ agent }: { agent: string | undefined }) {
  const t = words.value;
  return (
    <header class="bar">
      <a class="name" href={pathOf([])}><Mark /> Ebbtide</a>
      {agent !== undefined && <AgentSwitch agent={agent} />}
      {agent !== undefined && <Navigation agent={agent} />}
      <span class="grow" />
      {agent !== undefined && lamp.value !== "off" && <span class={`lamp ${lamp.value}`}>{t.lamp[lamp.value]}</span>}
      <button type="button" class="plain" title={t.languageName} lang={language.value === "zh" ? "en" : "zh-CN"}
        onClick={() => (language.value = language.value === "zh" ? "en" : "zh")}>{t.language}</button>
      <button type="button" class="plain" title={t.theme[theme.value]} aria-label={t.theme[theme.value]}
        onClick={() => (theme.value = NEXT_THEME[theme.value])}>{THEME_SIGN[theme.value]}</button>
      <KeyMenu />
    </header>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
      <path d="M12 12c0-1.500 2.300-1.500 2.300.5 0 2.300-3.500 3-5 .5-2-3 .2-6.500 3.600-6.500 4.200 0 6.500 4 5.300 7.900" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" />
      <circle cx="17.600" cy="17" r="1.900" class="gold" />
    </svg>
  );
}

function Navigation({ agent }: { agent: string }) {
  const t = words.value;
  const screen = place.value.segments[2];
  const here = screen === undefined || screen === "m" ? "" : screen;
  const hasReview = useReview(agent, here) || here === "review";
  const tabs = [["", t.memory], ["search", t.search], ["live", t.live], ["forget", t.forget], ["play", t.playground], ...(hasReview ? [["review", t.review]] : [])] as const;
  const bar = useRef<HTMLElement>(null);
  // On a narrow page the bar scrolls.
  useEffect(() => bar.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [here, hasReview]);
  return (
    <nav ref={bar}>
      {tabs.map(([name, title]) => (
        <a key={name} href={pathOf(["a", agent, ...(name ? [name] : [])])} {...(here === name ? { "aria-current": "page" } : {})}>{title}</a>
      ))}
    </nav>
  );
}

// Most agents have no statements, and a tab without anything to review would only raise questions. It appears with the
// first statement, or when the agent begins to extract them. Its address works in any case.
function useReview(agent: string, here: string): boolean {
  const found = useLoad(async (signal) => {
    await afterTheScreen();
    const { parameters } = await client.value.getAgent(agent, { signal });
    if (parameters.extraction !== "off") return true;
    return (await client.value.listStatements(agent, { page_size: 1, states: [...STATEMENT_STATES] }, { signal })).statements.length > 0;
  }, [agent]);
  const { reload } = found;
  const shown = useRef(here);
  useEffect(() => {
    if (shown.current !== here) reload();
    shown.current = here;
  }, [here]);
  return found.value ?? false;
}

const AGENTS_SHOWN = 200;
const SCREEN_MS = 300;

// What the header shows besides links can wait for the requests of the screen.
function afterTheScreen(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SCREEN_MS));
}

function AgentSwitch({ agent }: { agent: string }) {
  const agents = useLoad(async (signal) => {
    await afterTheScreen();
    return client.value.listAgents({ page_size: AGENTS_SHOWN }, { signal });
  }, []);
  const names = agents.value?.agents.map((one) => one.agent_id) ?? [];
  // An agent has a name, so the empty one leads to the list of all of them.
  const choose = (name: string) => {
    if (name === "") return go(pathOf([]));
    const [, , screen] = place.value.segments;
    go(pathOf(["a", name, ...(screen && screen !== "m" ? [screen] : [])]));
  };
  return (
    <select class="agent" aria-label={words.value.agents} value={agent} onChange={(event) => choose(event.currentTarget.value)}>
      {(names.includes(agent) ? names : [agent, ...names]).map((name) => <option key={name} value={name}>{visible(name)}</option>)}
      {agents.value?.next_page_token && <option value="">{words.value.agentsMore}</option>}
    </select>
  );
}

addEventListener("click", follow);
render(<View />, document.getElementById("view") as HTMLElement);
