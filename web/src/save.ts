/** Save files to the downloads of the browser. */

import { stemOf, type Model } from "./intake";
import { packFiles } from "./zip";

/** Milliseconds after which a browser has started the download. */
const DOWNLOAD_START_MS = 30_000;

export function saveFile(file: File): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), DOWNLOAD_START_MS);
}

/** Save a model, with its companions in a ZIP. */
export async function saveModel({ name, file, companions }: Model): Promise<void> {
  if (companions.length === 0) saveFile(file);
  else saveFile(new File([await packFiles([{ path: name, file }, ...companions])], `${stemOf(name)}.zip`));
}

/** Save several files as one ZIP. Equal names get a number. */
export async function saveAll(files: File[]): Promise<void> {
  const paths = new Set<string>();
  const named = files.map((file) => {
    let path = file.name;
    for (let copy = 2; paths.has(path); copy++) path = file.name.replace(/(\.[^.]*)?$/, `-${copy}$1`);
    paths.add(path);
    return { path, file };
  });
  saveFile(new File([await packFiles(named)], "meshhub.zip", { type: "application/zip" }));
}
