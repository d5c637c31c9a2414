/** Sends requests to the service. Addresses are relative, because the page may be served below a path prefix. */

/** Directory of the page, with a slash at its end. */
export const base = new URL(".", location.href.replace(/[?#].*$/, "")).href;

export class ApiError extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly requestId = "",
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
  }
}

/** Error code of the page itself: no answer from the service. */
export const OFFLINE = "offline";
/** Error code of the page itself: the user canceled the request. */
export const CANCELLED = "canceled";

let apiKey = "";

export function setApiKey(key: string): void {
  apiKey = key;
}

interface Call {
  body?: FormData;
  signal?: AbortSignal | undefined;
  onUpload?: ((share: number) => void) | undefined;
}

export interface Answer {
  data: ArrayBuffer;
  header: (name: string) => string | null;
}

/** Called with the requests that remain in this minute. */
let onRemaining: (remaining: number) => void = () => undefined;

export function watchRemaining(callback: (remaining: number) => void): void {
  onRemaining = callback;
}

/** Send a request. XMLHttpRequest reports the progress of uploads, which fetch does not. */
export function send(method: string, path: string, { body, signal, onUpload }: Call = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, new URL(path, base));
    request.responseType = "arraybuffer";
    if (apiKey) request.setRequestHeader("X-Api-Key", apiKey);
    request.setRequestHeader("Accept", "application/json, */*");
    request.upload.onprogress = ({ loaded, total }) => onUpload?.(loaded / total);
    request.onerror = () => reject(new ApiError("", OFFLINE));
    request.onabort = () => reject(new ApiError("", CANCELLED));
    request.onload = () => {
      const remaining = request.getResponseHeader("RateLimit-Remaining");
      if (remaining !== null) onRemaining(Number(remaining));
      const data = request.response as ArrayBuffer;
      if (request.status >= 400) reject(toError(request, data));
      else resolve({ data, header: (name) => request.getResponseHeader(name) });
    };
    signal?.addEventListener("abort", () => request.abort());
    if (signal?.aborted) reject(new ApiError("", CANCELLED));
    else request.send(body ?? null);
  });
}

function toError(request: XMLHttpRequest, data: ArrayBuffer): ApiError {
  const retryAfter = request.getResponseHeader("Retry-After");
  let body: { error?: string; error_code?: string; request_id?: string; details?: { error: string }[] } = {};
  try {
    body = JSON.parse(new TextDecoder().decode(data)) as typeof body;
  } catch {
    // A proxy answered; the status is all that it reports.
  }
  return new ApiError(
    body.details?.[0]?.error ?? body.error ?? `HTTP ${request.status}`,
    body.error_code ?? `http_${request.status}`,
    body.request_id,
    retryAfter === null ? null : Number(retryAfter),
  );
}

export async function getJson<Body>(path: string, call?: Call): Promise<Body> {
  const { data } = await send(call?.body ? "POST" : "GET", path, call);
  return JSON.parse(new TextDecoder().decode(data)) as Body;
}

/** Open a stream of events. */
export async function openStream(path: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const headers: HeadersInit = apiKey ? { "X-Api-Key": apiKey } : {};
  const response = await fetch(new URL(path, base), { headers, signal });
  if (!response.ok || !response.body) throw new ApiError(`HTTP ${response.status}`, `http_${response.status}`);
  return response.body;
}
