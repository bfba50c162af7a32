// The dialog that asks for a key, and the menu of the key.
import { useEffect, useRef, useState } from "preact/hooks";
import { Unauthenticated } from "ebbtide-client";
import { me, needsKey, signIn, signOut } from "../session";
import { words } from "../words";
import { sentenceOf } from "../words/reasons";

export function KeyDialog() {
  const t = words.value;
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const keep = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (needsKey.value) {
      // It gives the focus to the field, the first one of the dialog.
      if (!dialog.current?.open) dialog.current?.showModal();
    } else dialog.current?.close();
  }, [needsKey.value]);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setProblem("");
    try {
      await signIn(field.current?.value.trim() ?? "", keep.current?.checked ?? false);
      if (field.current) field.current.value = "";
    } catch (error) {
      setProblem(error instanceof Unauthenticated ? t.keyWrong : sentenceOf(error).sentence);
    }
  };
  // A browser closes a dialog at the second Esc, and without a key the page behind it is empty.
  const stay = () => needsKey.value && dialog.current?.showModal();
  return (
    <dialog ref={dialog} class="key" aria-labelledby="key-title" onCancel={(event) => needsKey.value && event.preventDefault()} onClose={stay}>
      <form onSubmit={(event) => void submit(event as SubmitEvent)}>
        <h2 id="key-title">{t.keyTitle}</h2>
        <p>{t.keyExplained}</p>
        <label>
          {t.keyLabel}
          <input ref={field} type="password" autocomplete="off" required />
        </label>
        <label class="check">
          <input ref={keep} type="checkbox" /> {t.keyKeep}
        </label>
        {problem && <p class="bad" role="alert">{problem}</p>}
        <button type="submit" class="main">{t.signIn}</button>
      </form>
    </dialog>
  );
}

export function KeyMenu() {
  const t = words.value;
  const who = me.value;
  if (!who) return null;
  if (!who.keys_required) return null;
  return (
    <details class="menu">
      <summary>{t.keyMay(who.scopes)}</summary>
      <div>
        <p><code>{who.key_id}</code></p>
        <button type="button" onClick={signOut}>{t.signOut}</button>
      </div>
    </details>
  );
}
