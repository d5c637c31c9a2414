/** Save files to the downloads of the browser. */

import { writeZip } from "./zip";

/** Milliseconds after which a browser has started the download. */
const DOWNLOAD_START_MS = 30_000;

export function saveFile(file: File): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), DOWNLOAD_START_MS);
}

/** Save several files as one ZIP. Equal names get a number. */
export async function saveAll(files: File[]): Promise<void> {
  const paths = new Set<string>();
  const entries = files.map(async (file) => {
    let path = file.name;
    for (let copy = 2; paths.has(path); copy++) path = file.name.replace(/(\.[^.]*)?$/, `-${copy}$1`);
    paths.add(path);
    return { path, data: new Uint8Array(await file.arrayBuffer()) };
  });
  saveFile(new File([writeZip(await Promise.all(entries))], "meshhub.zip", { type: "application/zip" }));
}
