/** Turn dropped and picked files, folders and ZIP archives into models with their companions. */

import constants from "./constants.json";
import { ArchiveError, readZip, type ArchiveDefect } from "./zip";

/** A model and the files that it needs, such as materials and textures. */
export interface Model {
  name: string;
  /** Path in the dropped folder or archive, which begins with its name; absent for a single file. */
  path?: string;
  file: File;
  companions: { path: string; file: File }[];
  /** Where it is on this machine; absent for a file that was dropped or chosen. */
  origin?: Origin;
}

/** Place of a file that the owner of this machine opened in the app. */
export interface Origin {
  id: number;
  folder: string;
}

export interface PathFile {
  path: string;
  file: File;
}

/** Archive among the files that cannot be unpacked. */
export class UnpackError extends Error {
  constructor(
    readonly path: string,
    readonly defect: ArchiveDefect,
  ) {
    super(`'${path}' is ${defect}`);
  }
}

const COMPANION_EXTENSIONS = new Set(constants.companionExtensions);
/** Formats whose models get every companion in their folder; a model of another format gets those that it mentions. */
const WITH_FOLDER = new Set(["obj", "gltf", "ply"]);
/** Maximum size in bytes of a file that is searched for the names of companions. */
const MAX_SEARCHED_BYTES = 100_000_000;
const SYSTEM_FILES = /(^|\/)(__MACOSX\/|\._|\.DS_Store$|Thumbs\.db$|desktop\.ini$)/;

export function extensionOf(name: string): string {
  return /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
}

export function stemOf(name: string): string {
  return name.replace(/\.[^./]+$/, "");
}

/** Return the files of a drop; folders are read recursively. */
export async function readDrop(transfer: DataTransfer): Promise<PathFile[]> {
  const entries = Array.from(transfer.items, (item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return readPicked(transfer.files);
  return (await Promise.all(entries.map((entry) => readEntry(entry)))).flat();
}

export function readPicked(files: Iterable<File>): PathFile[] {
  return Array.from(files, (file) => ({ path: file.webkitRelativePath || file.name, file }));
}

async function readEntry(entry: FileSystemEntry): Promise<PathFile[]> {
  const path = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ path, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const children: PathFile[] = [];
  // A reader returns at most 100 entries at once, and an empty list at the end.
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (batch.length === 0) return children;
    children.push(...(await Promise.all(batch.map((child) => readEntry(child)))).flat());
  }
}

/** Unpack ZIP archives and group the files into models with companions. Throws an UnpackError. */
export async function groupModels(files: PathFile[]): Promise<Model[]> {
  const unpacked = await Promise.all(files.map(async (each) => (isArchive(each) ? unpackModels(each) : [each])));
  const usable = unpacked.flat().filter(({ path }) => !SYSTEM_FILES.test(path));
  const companions = usable.filter(({ path }) => COMPANION_EXTENSIONS.has(extensionOf(path)));
  const models = usable.filter(isModel);
  // Without any model the companions themselves are sent, so that the service reports what is wrong with them.
  if (models.length === 0) return companions.map(({ file }) => ({ name: file.name, file, companions: [] }));
  const modelFolders = new Set(models.map(({ path }) => folderOf(path)));
  const shared = companions.filter(({ path }) => !modelFolders.has(folderOf(path)));
  return Promise.all(
    models.map(async (model) => ({
      name: model.file.name,
      ...(model.path !== model.file.name && { path: model.path }),
      file: model.file,
      companions: await findCompanions(model, companions, shared),
    })),
  );
}

export function isArchive({ path }: PathFile): boolean {
  return extensionOf(path) === "zip";
}

function isModel({ path }: PathFile): boolean {
  return !COMPANION_EXTENSIONS.has(extensionOf(path)) && !SYSTEM_FILES.test(path);
}

/** Unpack an archive. Its models are below its name: two archives may hold equal paths. */
async function unpackModels(archive: PathFile): Promise<PathFile[]> {
  const entries = await unpack(archive);
  // Materials and textures alone belong to models beside the archive.
  if (!entries.some(isModel)) return entries;
  return entries.map(({ path, file }) => ({ path: `${archive.path}/${path}`, file }));
}

/** Return the folder and the archive of a model, as far as they are known; "" if they are not. */
export function placeOf({ path = "", origin }: Model): string {
  return [origin?.folder ?? "", folderOf(path).replace(/\/$/, "")].filter(Boolean).join("/");
}

/** Return a short place of a model, which distinguishes it from another one of its name; "" without one. */
export function shortPlaceOf({ path = "", origin }: Model): string {
  return folderOf(path).replace(/\/$/, "") || (origin?.folder.replace(/[\\/]$/, "").replace(/^.*[\\/]/, "") ?? "");
}

async function unpack({ path, file }: PathFile): Promise<PathFile[]> {
  const data = new Uint8Array(await file.arrayBuffer());
  const entries = await readZip(data).catch((error: unknown) => {
    throw error instanceof ArchiveError ? new UnpackError(path, error.defect) : error;
  });
  const usable = entries.filter((entry) => !SYSTEM_FILES.test(entry.path));
  if (usable.length === 0) throw new UnpackError(path, "empty");
  return usable.map((entry) => ({ path: entry.path, file: new File([entry.data], entry.path.replace(/^.*\//, "")) }));
}

function folderOf(path: string): string {
  return path.replace(/[^/]*$/, "");
}

/**
 * Return the companions of a model, by their paths from its folder; by their names if they lie elsewhere.
 * @param shared Companions in folders without a model, such as `textures` beside the folder of the model.
 */
async function findCompanions(
  model: PathFile,
  companions: PathFile[],
  shared: PathFile[],
): Promise<Model["companions"]> {
  const folder = folderOf(model.path);
  const own = companions.filter(({ path }) => path.startsWith(folder));
  const near = WITH_FOLDER.has(extensionOf(model.path)) ? own : await findMentioned([model], own);
  const names = new Set(near.map(nameOf));
  const others = shared.filter((each) => !each.path.startsWith(folder) && !names.has(nameOf(each)));
  const firstOfName = new Map(others.reverse().map((each) => [nameOf(each), each]));
  const far = await findMentioned([model, ...near], [...firstOfName.values()]);
  return [
    ...near.map(({ path, file }) => ({ path: path.slice(folder.length), file })),
    ...far.map(({ file }) => ({ path: file.name, file })),
  ];
}

function nameOf({ file }: PathFile): string {
  return file.name.toLowerCase();
}

/** Return the files whose names occur in a model, in its companions, or in another file that is found. */
async function findMentioned(mentioning: PathFile[], files: PathFile[]): Promise<PathFile[]> {
  const found: PathFile[] = [];
  const searched = [...mentioning];
  for (const { file } of searched) {
    if (found.length === files.length) break;
    if (file.size > MAX_SEARCHED_BYTES) continue;
    const text = decodeNames(await file.text()).toLowerCase();
    const mentioned = files.filter((each) => !found.includes(each) && text.includes(nameOf(each)));
    found.push(...mentioned);
    searched.push(...mentioned);
  }
  return found;
}

/** Return a text with characters in place of their percent-encoding. */
function decodeNames(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      // not UTF-8, or a percent sign that encodes nothing
      return encoded;
    }
  });
}
