/** Thumbnails of the table: drawn while it is open, one after the other. */

import { effect } from "@preact/signals";

import { preview } from "../api";
import type { ThumbnailDrawer } from "../viewer/thumbnails";
import { find, isTableShown, type Item, items, update } from "./items";
import { previewTriangles, readerFields } from "./reading";

let isDrawing = false;

export function watchThumbnails(): void {
  effect(() => {
    if (next()) queueMicrotask(() => void drawAll());
  });
}

function next(): Item | undefined {
  return isTableShown.value
    ? items.value.find(({ state, thumbnail }) => state === "ready" && thumbnail === null)
    : undefined;
}

async function drawAll(): Promise<void> {
  if (isDrawing) return;
  isDrawing = true;
  let drawer: ThumbnailDrawer | null = null;
  try {
    drawer = new (await import("../viewer/thumbnails")).ThumbnailDrawer();
  } catch {
    // Without WebGL, rows have no picture.
  }
  for (let item = next(); item; item = next()) {
    const thumbnail = drawer ? await draw(item, drawer).catch(() => "") : "";
    if (thumbnail !== null) update(item.id, { thumbnail });
  }
  drawer?.dispose();
  isDrawing = false;
}

/** Return the picture of a model; null if the table was closed in the meantime, because the view has it now. */
async function draw(item: Item, drawer: ThumbnailDrawer): Promise<string | null> {
  if (item.picture) return toAddress(drawer.draw(item.picture));
  const { parsePicture } = await import("../viewer/picture");
  const options = readerFields(item);
  const data = await preview(item.model, {
    options,
    maxTriangles: previewTriangles(),
    signal: new AbortController().signal,
  });
  const picture = await parsePicture(data);
  const isWanted = isTableShown.value && find(item.id) !== undefined;
  const thumbnail = isWanted ? toAddress(drawer.draw(picture)) : null;
  picture.dispose();
  return thumbnail;
}

function toAddress(canvas: HTMLCanvasElement): string {
  return canvas.toDataURL("image/webp", 0.8);
}
