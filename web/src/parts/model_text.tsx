// The text of a recall, as a program gives it to its language model.
import { tokensOf, visible } from "../text";
import { screens } from "../words/screens";

export function ModelText({ text }: { text: string }) {
  const s = screens.value;
  if (!text) return <p class="quiet">{s.modelTextNone}</p>;
  return (
    <>
      <p class="quiet small">{s.modelTextHint} {s.size([...text].length, tokensOf(text))}</p>
      <pre class="said model-text" tabIndex={0}>{visible(text)}</pre>
    </>
  );
}
