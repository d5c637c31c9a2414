/** Files of the app that this tab shows, so that it shows them again when it is loaded again. */

import { appToken } from "./app-token";
import { readStored, store } from "./storage";

const STORAGE_KEY = "meshhub-app-files";

interface Kept {
  /** Ids start anew with each start of the app, and so do tokens. */
  token: string;
  ids: number[];
}

function readIds(): number[] {
  try {
    const { token, ids } = JSON.parse(readStored("sessionStorage", STORAGE_KEY) ?? "{}") as Partial<Kept>;
    return token === appToken ? (ids ?? []) : [];
  } catch {
    // Another version of the page wrote it.
    return [];
  }
}

function keep(ids: number[]): void {
  const kept: Kept = { token: appToken, ids };
  store("sessionStorage", STORAGE_KEY, JSON.stringify(kept));
}

export function isShown(id: number): boolean {
  return readIds().includes(id);
}

export function keepShown(id: number): void {
  if (!isShown(id)) keep([...readIds(), id]);
}

export function forgetShown(id: number): void {
  keep(readIds().filter((other) => other !== id));
}
