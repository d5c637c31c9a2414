/** Save a file to the downloads of the browser. */

/** Milliseconds after which a browser has started the download. */
const DOWNLOAD_START_MS = 30_000;

export function saveFile(file: File): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), DOWNLOAD_START_MS);
}
