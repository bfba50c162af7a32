// What people said, with where it was said, and links to memories. It is shown as text, never as markup.
import { Fragment, type ComponentChildren } from "preact";
import type { components } from "ebbtide-client";
import { pathOf } from "../router";
import { visible } from "../text";
import { dateOf, words } from "../words";
import "../screens.css";

type Source = components["schemas"]["SourceInfo"] & { quote?: string };

/** Where something was said: speaker, conversation and date. */
export function Origin({ source, at }: { source: Source; at?: number | null }) {
  const who = source.speaker || (words.value.roles[source.role] ?? source.role);
  const parts = [who, source.conversation_id, dateOf(source.timestamp ?? at)].filter(Boolean);
  return <span class="origin">{parts.map((part, index) => <Fragment key={index}>{index > 0 && " · "}<bdi>{visible(part)}</bdi></Fragment>)}</span>;
}

/** Words that were said, and where. */
export function Quoted({ source, at }: { source: Source; at?: number | null }) {
  return (
    <figure class="quoted">
      {source.quote ? <blockquote class="said">{visible(source.quote)}</blockquote> : <p class="quiet">{words.value.wordsDeleted}</p>}
      <figcaption><Origin source={source} {...(at === undefined ? {} : { at })} /></figcaption>
    </figure>
  );
}

/** A link to the life of a memory or a name. Messages have no life, so they are not linked. */
export function NodeLink({ agent, id, children }: { agent: string; id: string; children?: ComponentChildren }) {
  if (!id.startsWith("n")) return <code>{children ?? id}</code>;
  return <a href={pathOf(["a", agent, "m", id])}>{children ?? id}</a>;
}

/** A sentence whose places, such as {node}, are replaced. */
export function Filled({ children, places }: { children: string; places: Record<string, ComponentChildren> }) {
  const parts = children.split(/\{(\w+)\}/);
  return <>{parts.map((part, index) => <Fragment key={index}>{index % 2 ? places[part] : part}</Fragment>)}</>;
}
