// The key, what it allows, and the client. The key is in this module only: not in the page, the address or a cookie.
import { computed, signal } from "@preact/signals";
import { Ebbtide, type ResponseOf, Unauthenticated } from "ebbtide-client";

export type Me = ResponseOf<"getMe">;
export type Permission = "read" | "write" | "admin";

const FOR_THIS_TAB = "ebbtide.key";
const TIMEOUT_MS = 30_000;

const key = signal(kept());

/** Whether the daemon refused the key, or that there is none. */
export const needsKey = signal(false);
/** What the key may do; undefined until the daemon answered. */
export const me = signal<Me | undefined>(undefined);

export const client = computed(() => clientWith(key.value, 3));
/** A client whose streams end when the connection is lost. */
export const streams = computed(() => clientWith(key.value, 1));

function clientWith(apiKey: string, attempts: number): Ebbtide {
  return new Ebbtide({ baseUrl: location.origin, apiKey, timeoutMs: TIMEOUT_MS, retries: { attempts, totalMs: 10_000 } });
}

/** Ask the daemon what the key allows. */
export async function askWhoIAm(): Promise<void> {
  me.value = await client.value.getMe();
  needsKey.value = false;
}

/** Use another key, if the daemon knows it. Throws Unauthenticated otherwise. */
export async function signIn(candidate: string, isForThisTab: boolean): Promise<void> {
  const found = await clientWith(candidate, 1).getMe();
  key.value = candidate;
  me.value = found;
  needsKey.value = false;
  keep(isForThisTab ? candidate : "");
}

/** Forget the key. */
export function signOut(): void {
  key.value = "";
  me.value = undefined;
  keep("");
  needsKey.value = true;
}

/** Whether the key has a permission. */
export function may(permission: Permission): boolean {
  return me.value?.scopes.includes(permission) ?? false;
}

/** Ask for a key if that is what an error means. */
export function note(error: unknown): void {
  if (error instanceof Unauthenticated) needsKey.value = true;
}

function kept(): string {
  try {
    return sessionStorage.getItem(FOR_THIS_TAB) ?? "";
  } catch {
    return "";
  }
}

function keep(value: string): void {
  try {
    if (value) sessionStorage.setItem(FOR_THIS_TAB, value);
    else sessionStorage.removeItem(FOR_THIS_TAB);
  } catch {
    // Then the key is asked for again after a reload.
  }
}
