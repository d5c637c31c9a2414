/** Sends requests to the service. Addresses are relative, because the page may be served below a path prefix. */

import { appToken, isApp } from "./app-token";
import { language, type Values } from "./i18n";

/** Error as the service describes it. */
export interface Failed {
  error: string;
  error_code: string;
  values?: Values;
}

/** Directory of the page, with a slash at its end. */
export const base = new URL(".", location.href.replace(/[?#].*$/, "")).href;

export class ApiError extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly requestId = "",
    readonly retryAfterS: number | null = null,
    /** Numbers and names in the message. */
    readonly values: Values = {},
  ) {
    super(message);
  }
}

/** Error code of the page itself: no answer from the service. */
export const OFFLINE = "offline";
/** Error code of the page itself: the user canceled the request. */
export const CANCELED = "canceled";

let apiKey = "";

export function setApiKey(key: string): void {
  apiKey = key;
}

/** Return the headers that identify the sender. */
function credentials(): Record<string, string> {
  if (isApp) return { "X-Meshhub-Token": appToken };
  return apiKey ? { "X-Api-Key": apiKey } : {};
}

interface Call {
  body?: FormData | File;
  /** Text by which the service recognizes a repetition, so that it does nothing twice. */
  idempotencyKey?: string;
  signal?: AbortSignal | undefined;
  onUpload?: ((share: number) => void) | undefined;
}

export interface Answer {
  data: ArrayBuffer;
  header: (name: string) => string | null;
}

interface Watcher {
  /** Called with the requests that remain in this minute. */
  onRemaining: (remaining: number) => void;
  /** Called before a request waits, with the reason; the wait ends if the signal is aborted. */
  onWait: (seconds: number, code: string, signal?: AbortSignal) => void;
}

let watcher: Watcher = { onRemaining: () => undefined, onWait: () => undefined };

export function watchRequests(callbacks: Watcher): void {
  watcher = callbacks;
}

/** Errors after which the same request may succeed a few seconds later. */
export const PASSING_CODES: ReadonlySet<string> = new Set(["rate_limit_exceeded", "server_busy", "shutting_down"]);
/** Seconds up to which a request waits by itself; the daily limit of a publishable key lasts for hours. */
const MAX_WAIT_S = 90;
/** Times that a request waits before it fails. */
const MAX_WAITS = 10;

/** Error of a caller who already runs as many conversions as the plan permits, for example in another tab. */
export const TOO_MANY_JOBS = "too_many_jobs";
/** Seconds after which a conversion asks at the latest whether it may run; each request counts for the rate limit. */
const MAX_JOB_WAIT_S = 20;

/** Send a request; at a limit, send it again as soon as the service accepts it. */
export async function send(method: string, path: string, call: Call = {}): Promise<Answer> {
  let waits = 0;
  let jobWaits = 0;
  for (;;) {
    try {
      return await sendOnce(method, path, call);
    } catch (error) {
      const seconds = error instanceof ApiError ? error.retryAfterS : null;
      if (!(error instanceof ApiError) || seconds === null) throw error;
      // The other conversions end some time.
      const pause = error.code === TOO_MANY_JOBS ? Math.min(MAX_JOB_WAIT_S, seconds * ++jobWaits) : seconds;
      if (error.code !== TOO_MANY_JOBS && (!PASSING_CODES.has(error.code) || ++waits > MAX_WAITS)) throw error;
      if (pause > MAX_WAIT_S) throw error;
      watcher.onWait(pause, error.code, call.signal);
      await sleep(1000 * pause, call.signal);
    }
  }
}

/** Wait; throws CANCELED if the caller aborts. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    const cancel = (): void => {
      clearTimeout(timer);
      reject(new ApiError("", CANCELED));
    };
    signal?.addEventListener("abort", cancel, { once: true });
    if (signal?.aborted) cancel();
  });
}

/** Send a request. XMLHttpRequest reports the progress of uploads, which fetch does not. */
function sendOnce(method: string, path: string, { body, idempotencyKey, signal, onUpload }: Call): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, new URL(path, base));
    request.responseType = "arraybuffer";
    for (const [name, value] of Object.entries(credentials())) request.setRequestHeader(name, value);
    request.setRequestHeader("Accept", "application/json, */*");
    if (idempotencyKey) request.setRequestHeader("Idempotency-Key", idempotencyKey);
    request.setRequestHeader("Accept-Language", language.peek());
    request.upload.onprogress = ({ loaded, total }) => onUpload?.(loaded / total);
    request.onerror = () => reject(new ApiError("", OFFLINE));
    request.onabort = () => reject(new ApiError("", CANCELED));
    request.onload = () => {
      const remaining = request.getResponseHeader("RateLimit-Remaining");
      if (remaining !== null) watcher.onRemaining(Number(remaining));
      const data = request.response as ArrayBuffer;
      if (request.status >= 400) reject(toError(request.status, request.getResponseHeader("Retry-After"), data));
      else resolve({ data, header: (name) => request.getResponseHeader(name) });
    };
    signal?.addEventListener("abort", () => request.abort());
    if (signal?.aborted) reject(new ApiError("", CANCELED));
    else request.send(body ?? null);
  });
}

function toError(status: number, retryAfter: string | null, data: ArrayBuffer): ApiError {
  let body: Partial<Failed> & { request_id?: string; details?: Failed[] } = {};
  try {
    body = JSON.parse(new TextDecoder().decode(data)) as typeof body;
  } catch {
    // A proxy answered; the status is all that it reports.
  }
  return new ApiError(
    body.details?.[0]?.error ?? body.error ?? `HTTP ${status}`,
    body.error_code ?? `http_${status}`,
    body.request_id,
    retryAfter === null ? null : Number(retryAfter),
    body.details?.[0]?.values ?? body.values,
  );
}

export async function getJson<Body>(path: string, call?: Call): Promise<Body> {
  const { data } = await send(call?.body ? "POST" : "GET", path, call);
  return JSON.parse(new TextDecoder().decode(data)) as Body;
}

/** Open a stream of events. */
export async function openStream(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const response = await fetch(new URL(path, base), {
    headers: { ...credentials(), "Accept-Language": language.peek() },
    signal,
  });
  if (!response.ok || !response.body) {
    throw toError(response.status, response.headers.get("Retry-After"), await response.arrayBuffer());
  }
  return response.body;
}
