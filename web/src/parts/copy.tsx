// A command to copy.
import { useState } from "preact/hooks";
import { may, me } from "../session";
import { words } from "../words";

const SHOWN_MS = 1_500;

/** A command with a button that copies it. */
export function Command({ children }: { children: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(children);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  return (
    <div class="command">
      {/* A line ends between words only, never after a hyphen. */}
      <code>{children.split(" ").map((word, index) => <>{index > 0 && " "}<span>{word}</span></>)}</code>
      <button type="button" onClick={() => void copy()}>{isCopied ? words.value.copied : words.value.copy}</button>
    </div>
  );
}

/** A command that makes an agent remember something, below a hint, or who could run it. */
export function RememberCommand({ agent, hint }: { agent: string; hint: string }) {
  const t = words.value;
  if (me.value && !may("write")) return <p>{t.onlyWriters} {t.missingPermission(me.value.scopes)}</p>;
  return (
    <>
      <p>{hint}</p>
      <Command>{`echo "${t.example}" | ebbtide remember - --agent ${quoted(agent)}`}</Command>
    </>
  );
}

/** Return a name as a shell takes it. */
export function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}
