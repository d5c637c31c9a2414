/** The model that the address of the page names: `?url=https://models.example/part.stl`. */

export interface ModelAddress {
  url: URL;
  /** Name of the file. */
  name: string;
}

/** Return the model that an address names; null without one, "invalid" if the text is not the address of a file. */
export function readModelAddress(search: string): ModelAddress | "invalid" | null {
  const text = new URLSearchParams(search).get("url");
  if (text === null) return null;
  if (!URL.canParse(text)) return "invalid";
  const url = new URL(text);
  const last = url.pathname.split("/").pop() ?? "";
  if (!["http:", "https:"].includes(url.protocol) || url.username !== "" || last === "") return "invalid";
  return { url, name: decodeName(last) };
}

function decodeName(text: string): string {
  try {
    // A name is never a path.
    return decodeURIComponent(text).replace(/[\\/]/g, "_");
  } catch {
    return text;
  }
}

/** Return the bytes of a response; null if there are more than the limit. */
export async function readLimited(response: Response, limit: number): Promise<Blob | null> {
  if (Number(response.headers.get("Content-Length") ?? 0) > limit || !response.body) {
    await response.body?.cancel();
    return response.body ? null : new Blob();
  }
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  const reader = response.body.getReader();
  let bytes = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    bytes += part.value.length;
    if (bytes > limit) {
      await reader.cancel();
      return null;
    }
    chunks.push(part.value);
  }
  return new Blob(chunks);
}
