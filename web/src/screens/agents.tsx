// The agents of the daemon, and how the daemon is.
import { useEffect, useState } from "preact/hooks";
import { RememberCommand } from "../parts/copy";
import { Empty, Shown, useLoad } from "../parts/load";
import { pathOf } from "../router";
import { client, may, me } from "../session";
import { visible } from "../text";
import { dateOf, words } from "../words";

const PAGE = 100;
const EVERY_MS = 5_000;

export function Agents() {
  const t = words.value;
  const [tokens, setTokens] = useState<readonly string[]>([""]);
  const [filter, setFilter] = useState("");
  const token = tokens.at(-1) ?? "";
  const page = useLoad((signal) => client.value.listAgents({ page_size: PAGE, ...(token && { page_token: token }) }, { signal }), [token]);
  const { reload } = page;
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, [reload]);
  return (
    <div class="page">
      <h1>{t.agentsTitle}</h1>
      <Daemon />
      <Shown of={page}>
        {({ agents, next_page_token }) => {
          if (agents.length === 0 && tokens.length === 1) return <NoAgents />;
          const found = agents.filter((one) => one.agent_id.toLocaleLowerCase().includes(filter.trim().toLocaleLowerCase()));
          return (
            <>
              <p><input type="search" placeholder={t.agentsFilter} aria-label={t.agentsFilter} value={filter} onInput={(event) => setFilter(event.currentTarget.value)} /></p>
              {found.length === 0 ? <p class="quiet">{t.agentsNoMatch}</p> : <AgentTable agents={found} />}
              <p class="pages">
                {tokens.length > 1 && <button type="button" onClick={() => setTokens(tokens.slice(0, -1))}>{t.previous}</button>}
                {next_page_token && <button type="button" onClick={() => setTokens([...tokens, next_page_token])}>{t.next}</button>}
              </p>
            </>
          );
        }}
      </Shown>
      <p class="quiet small">{me.value && t.version(me.value.version)}{me.value && !me.value.keys_required && ` · ${t.noKeyNeeded}`}</p>
    </div>
  );
}

type Listing = Awaited<ReturnType<typeof client.value.listAgents>>["agents"][number];

function AgentTable({ agents }: { agents: readonly Listing[] }) {
  const t = words.value;
  return (
    <div class="table agents">
      <table>
        <thead>
          <tr>
            <th scope="col">{t.agentColumns.name}</th>
            <th scope="col" class="number">{t.agentColumns.memories}</th>
            <th scope="col" class="number">{t.agentColumns.entities}</th>
            <th scope="col" class="number">{t.agentColumns.messages}</th>
            <th scope="col">{t.agentColumns.created}</th>
            <th scope="col">{t.agentColumns.state}</th>
          </tr>
        </thead>
        <tbody>
          {agents.map((one) => (
            <tr key={one.agent_id}>
              <th scope="row"><a class="said" href={pathOf(["a", one.agent_id])}>{visible(one.agent_id)}</a></th>
              <td class="number">{t.number(one.counts.nodes)}</td>
              <td class="number">{t.number(one.counts.entities)}</td>
              <td class="number">{t.number(one.counts.messages)}</td>
              <td class="one-line">{dateOf(one.created_at)}</td>
              <td class="one-line quiet">{one.open ? t.open : t.closed}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function NoAgents() {
  const t = words.value;
  return (
    <Empty title={t.agentsNone}>
      <RememberCommand agent="ann" hint={t.agentsNoneHint} />
    </Empty>
  );
}

function Daemon() {
  const t = words.value;
  const ready = useLoad((signal) => client.value.getReadiness({ signal }), []);
  const hasAll = may("admin") || me.value?.keys_required === false;
  const more = useLoad(async (signal) => {
    if (!hasAll) return undefined;
    const [model, scheduler] = await Promise.all([client.value.getModel({ signal }), client.value.getScheduler({ signal })]);
    return { model, scheduler };
  }, [hasAll]);
  return (
    <p class="daemon">
      {ready.value && <span class={`ready ${ready.value.status}`}>{t.daemonReady[ready.value.status]} {ready.value.reasons.join("; ")}</span>}{" "}
      {more.value && <span>{t.model(more.value.model.name, more.value.model.kind)} {!more.value.model.available && t.modelDown}</span>}{" "}
      {more.value && more.value.scheduler.running.length + more.value.scheduler.waiting_count > 0 && <span class="quiet">{t.compressing(more.value.scheduler.running.length, more.value.scheduler.waiting_count)}</span>}
    </p>
  );
}
