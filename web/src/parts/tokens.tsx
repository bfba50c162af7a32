// Lists whose pages are reached by a token, one after the other.
import { useState } from "preact/hooks";
import { words } from "../words";

/** The token of the present page as a request has it, and buttons to the page before and after. */
export function useTokens() {
  const [tokens, setTokens] = useState<readonly string[]>([]);
  const token = tokens.at(-1) ?? "";
  const buttons = (next: string) =>
    tokens.length === 0 && !next ? null : (
      <p class="pages">
        <button type="button" disabled={tokens.length === 0} onClick={() => setTokens(tokens.slice(0, -1))}>{words.value.previous}</button>
        <button type="button" disabled={!next} onClick={() => setTokens([...tokens, next])}>{words.value.next}</button>
      </p>
    );
  return { token, request: token ? { page_token: token } : {}, isFirst: tokens.length === 0, reset: () => setTokens([]), buttons };
}
