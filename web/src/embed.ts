/**
 * Messages between the page in a frame (`?embed=1&origin=https://shop.example`) and the page around it.
 *
 * The service decides by `frame_ancestors` which sites may embed the page; `origin` names the one that embeds it here.
 * Messages of other windows and origins are ignored, and results are sent to that origin alone.
 */

import { parentOrigin } from "./embed-origin";
import { extensionOf } from "./intake";
import { convertAll, onOutput } from "./state/converting";
import { setOption, setTarget } from "./state/form";
import { addFiles } from "./state/reading";

type Message =
  | { type: "meshhub:load"; name: string; data: ArrayBuffer | Blob }
  | { type: "meshhub:options"; target?: string; options?: Record<string, string | boolean> }
  | { type: "meshhub:convert" };

export function isEmbedded(): boolean {
  return new URLSearchParams(location.search).get("embed") === "1";
}

export function startEmbedding(): void {
  const origin = parentOrigin(location.search);
  if (!isEmbedded() || window.parent === window || origin === null) return;
  const post = (message: object, transfer: Transferable[] = []): void =>
    window.parent.postMessage(message, origin, transfer);
  addEventListener("message", (event: MessageEvent<Message | null>) => {
    if (event.origin !== origin || event.source !== window.parent || typeof event.data?.type !== "string") return;
    receive(event.data, post);
  });
  onOutput(async (event) => {
    if ("failure" in event) {
      post({ type: "meshhub:error", error: event.failure.message, error_code: event.failure.code });
      return;
    }
    const { file, model, report } = event.output;
    const data = await file.arrayBuffer();
    const format = report?.target.format ?? extensionOf(model.name);
    post({ type: "meshhub:result", name: file.name, size: file.size, format, data, report }, [data]);
  });
  post({ type: "meshhub:ready" });
}

function receive(message: Message, post: (message: object) => void): void {
  if (message.type === "meshhub:load") {
    const file = new File([message.data], message.name);
    void addFiles([{ path: message.name, file }]).then(() => post({ type: "meshhub:loaded", name: message.name }));
  } else if (message.type === "meshhub:options") {
    if (message.target) setTarget(message.target);
    for (const [name, value] of Object.entries(message.options ?? {})) setOption(name, value);
  } else void convertAll();
}
