/** Printers on the network, and results that are sent to them. */

import { signal } from "@preact/signals";

import { getJson, OFFLINE, send, ApiError } from "../requests";
import type { NetworkPrinter } from "../types";
import { supported } from "./service";

/** Printers that the caller may use; empty until they are read. */
export const printers = signal<NetworkPrinter[]>([]);

/** Return whether printers take a file. */
export function isSendable(name: string): boolean {
  return (supported.value?.sends ?? []).some((extension) => name.toLowerCase().endsWith(extension));
}

export async function loadPrinters(): Promise<void> {
  printers.value = (await getJson<{ printers: NetworkPrinter[] }>("printers")).printers;
}

/** What is sent, and what the printer does with it. */
export interface Sending {
  file: File;
  /** Address of the printer. */
  printer: string;
  start: boolean;
  /** Whether a file of the same name is replaced. */
  replace: boolean;
}

/** Keys of requests without an answer: a repetition must not start a second print. */
const keys = new WeakMap<File, Map<string, string>>();

/** Send a file to a printer. Throws ApiError. */
export async function sendToPrinter({ file, printer, start, replace }: Sending): Promise<void> {
  const known = keys.get(file) ?? new Map<string, string>();
  keys.set(file, known);
  const what = JSON.stringify([printer, start, replace]);
  const idempotencyKey = known.get(what) ?? makeKey();
  known.set(what, idempotencyKey);
  const body = new FormData();
  body.set("printer", printer);
  body.set("start", String(start));
  body.set("replace", String(replace));
  body.append("file", file, file.name);
  try {
    await send("POST", "printers", { body, idempotencyKey });
  } catch (error) {
    if (error instanceof ApiError && error.code !== OFFLINE) known.delete(what);
    throw error;
  }
  known.delete(what);
}

/** Return a random text; `crypto.randomUUID` exists only on pages with HTTPS. */
function makeKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
