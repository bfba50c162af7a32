// Requests that a person starts, and what they need.
import { useState } from "preact/hooks";
import { may, me, note, type Permission } from "../session";
import { words } from "../words";
import { screens } from "../words/screens";

export interface Action {
  isBusy: boolean;
  error: unknown;
  /** Run a request. Returns whether it succeeded; its error is kept. */
  run: (request: () => Promise<unknown>) => Promise<boolean>;
}

/** A request at a time. */
export function useAction(): Action {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  const run = async (request: () => Promise<unknown>) => {
    setBusy(true);
    setError(undefined);
    try {
      await request();
      return true;
    } catch (problem) {
      note(problem);
      setError(problem);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, error, run };
}

/** Say which permission is missing, where a control would be. */
export function Missing({ permission }: { permission: Permission }) {
  if (me.value === undefined || may(permission)) return null;
  return (
    <p class="missing">
      {screens.value.missing(screens.value.permission[permission])} {words.value.missingPermission(me.value?.scopes ?? [])}
    </p>
  );
}
