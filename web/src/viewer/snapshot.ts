/** Pictures of the view as files. */

/** Width and height of a thumbnail. */
const THUMBNAIL_PIXELS: [number, number] = [144, 108];

/** Return a PNG of a canvas on the background of the page. */
export async function toPng(canvas: HTMLCanvasElement): Promise<Blob> {
  const copy = document.createElement("canvas");
  copy.width = canvas.width;
  copy.height = canvas.height;
  const context = copy.getContext("2d");
  if (!context) throw new Error("the browser cannot draw pictures");
  context.fillStyle = getComputedStyle(canvas).getPropertyValue("--stage").trim();
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  return new Promise((resolve, reject) =>
    copy.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is empty"))), "image/png"),
  );
}

/** Return a small picture of the middle of a canvas as a data address. */
export function toThumbnail(canvas: HTMLCanvasElement): string {
  const copy = document.createElement("canvas");
  const ratio = Math.max(THUMBNAIL_PIXELS[0] / canvas.width, THUMBNAIL_PIXELS[1] / canvas.height);
  [copy.width, copy.height] = THUMBNAIL_PIXELS;
  const [width, height] = [canvas.width * ratio, canvas.height * ratio];
  const context = copy.getContext("2d");
  context?.drawImage(canvas, (copy.width - width) / 2, (copy.height - height) / 2, width, height);
  return copy.toDataURL("image/webp", 0.8);
}
