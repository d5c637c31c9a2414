/** Save files to the downloads of the browser. */

import { stemOf, type Model } from "./intake";
import { packFiles } from "./zip";

/** Milliseconds after which a browser has started the download. */
const DOWNLOAD_START_MS = 30_000;

let onSave: (file: File) => void = () => undefined;

/** Call a function with each file that the browser saves. */
export function watchSaves(callback: (file: File) => void): void {
  onSave = callback;
}

export function saveFile(file: File): void {
  onSave(file);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), DOWNLOAD_START_MS);
}

/** Let a drag take a file out of the window, in browsers that can (Chromium). */
export function dragFile(event: DragEvent, file: File): void {
  onSave(file);
  const address = URL.createObjectURL(file);
  const type = file.type || "application/octet-stream";
  event.dataTransfer?.setData("DownloadURL", `${type}:${file.name}:${address}`);
  event.target?.addEventListener("dragend", () => setTimeout(() => URL.revokeObjectURL(address), DOWNLOAD_START_MS), {
    once: true,
  });
}

/** Save a model, with its companions in a ZIP. */
export async function saveModel({ name, file, companions }: Model): Promise<void> {
  if (companions.length === 0) saveFile(file);
  else saveFile(new File([await packFiles([{ path: name, file }, ...companions])], `${stemOf(name)}.zip`));
}

/**
 * Return a name that is not taken, and take it: equal names get a number.
 * @param taken Names in lower case, because Windows and macOS do not distinguish them by case.
 */
export function takeName(name: string, taken: Set<string>): string {
  let free = name;
  for (let copy = 2; taken.has(free.toLowerCase()); copy++) free = name.replace(/(\.[^.]*)?$/, `-${copy}$1`);
  taken.add(free.toLowerCase());
  return free;
}

/** Save files; several as one ZIP. */
export async function saveAll(files: File[]): Promise<void> {
  const [single, ...others] = files;
  if (single && others.length === 0) {
    saveFile(single);
    return;
  }
  // They may be unpacked into the folder of downloads.
  files.forEach(onSave);
  const taken = new Set<string>();
  const named = files.map((file) => ({ path: takeName(file.name, taken), file }));
  saveFile(new File([await packFiles(named)], "meshhub.zip", { type: "application/zip" }));
}

interface FolderWindow {
  showDirectoryPicker?: (options: { mode: "readwrite" }) => Promise<FileSystemDirectoryHandle>;
}

/** Whether the browser writes into folders, which it denies to a page in a frame of another site. */
export function canSaveIntoFolder(): boolean {
  return window.parent === window && "showDirectoryPicker" in window;
}

/**
 * Write files into a folder that the user chooses; files that it holds stay. Returns the name of the folder, or null if
 * the user chose none. Throws an Error if it cannot be written.
 */
export async function saveIntoFolder(files: File[]): Promise<string | null> {
  let folder: FileSystemDirectoryHandle | undefined;
  try {
    folder = await (window as FolderWindow).showDirectoryPicker?.({ mode: "readwrite" });
  } catch (error) {
    if (!(error instanceof DOMException && error.name === "AbortError")) throw error;
  }
  if (!folder) return null;
  const taken = new Set<string>();
  for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys())
    taken.add(name.toLowerCase());
  for (const file of files) {
    const name = takeName(file.name, taken);
    onSave(file);
    const stream = await (await folder.getFileHandle(name, { create: true })).createWritable();
    await stream.write(file);
    await stream.close();
  }
  return folder.name;
}
