/** ZIP archives: read entries, and write stored (uncompressed) ones. */

export interface Entry {
  path: string;
  data: Uint8Array<ArrayBuffer>;
}

export type ArchiveDefect = "damaged" | "empty" | "encrypted" | "tooLarge";

/** Archive whose files cannot be read. */
export class ArchiveError extends Error {
  constructor(readonly defect: ArchiveDefect) {
    super(`the archive is ${defect}`);
  }
}

const LOCAL_HEADER = 0x04034b50;
const CENTRAL_HEADER = 0x02014b50;
const END_OF_DIRECTORY = 0x06054b50;
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 65_535;
/** Bytes that an archive may unpack to; a model above it exceeds every plan. */
const MAX_UNPACKED_BYTES = 1_000_000_000;
const UTF8_FLAG = 0x800;
const STORED = 0;
const DEFLATED = 8;
/** 1980-01-01, the earliest date of the format: equal content gives equal bytes. */
const DOS_DATE = 0x21;

const crcTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

export function crc32(data: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of data) crc = (crc >>> 8) ^ (crcTable[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

export function isZip(data: Uint8Array): boolean {
  return data.length > 4 && data[0] === 0x50 && data[1] === 0x4b && (data[2] === 3 || data[2] === 5);
}

/** Unpack an archive. Throws an ArchiveError if it is damaged, encrypted or too large. */
export async function readZip(data: Uint8Array<ArrayBuffer>): Promise<Entry[]> {
  try {
    return await readEntries(data);
  } catch (error) {
    // A header may point beyond the end, and the browser rejects compressed data in its own words.
    throw error instanceof ArchiveError ? error : new ArchiveError("damaged");
  }
}

async function readEntries(data: Uint8Array<ArrayBuffer>): Promise<Entry[]> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const end = findEnd(view);
  const count = view.getUint16(end + 10, true);
  let offset = view.getUint32(end + 16, true);
  const entries: Entry[] = [];
  let unpacked = 0;
  for (let index = 0; index < count; index++) {
    if (view.getUint32(offset, true) !== CENTRAL_HEADER) throw new ArchiveError("damaged");
    const flags = view.getUint16(offset + 8, true);
    const method = view.getUint16(offset + 10, true);
    const packedBytes = view.getUint32(offset + 20, true);
    unpacked += view.getUint32(offset + 24, true);
    const nameBytes = view.getUint16(offset + 28, true);
    const local = view.getUint32(offset + 42, true);
    const path = new TextDecoder().decode(data.subarray(offset + 46, offset + 46 + nameBytes));
    offset += 46 + nameBytes + view.getUint16(offset + 30, true) + view.getUint16(offset + 32, true);
    if (path.endsWith("/")) continue;
    if (flags & 1) throw new ArchiveError("encrypted");
    if (unpacked > MAX_UNPACKED_BYTES) throw new ArchiveError("tooLarge");
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const packed = data.subarray(start, start + packedBytes);
    entries.push({ path, data: method === STORED ? packed : await inflate(packed, method) });
  }
  return entries;
}

function findEnd(view: DataView): number {
  const first = Math.max(0, view.byteLength - END_BYTES - MAX_COMMENT_BYTES);
  for (let offset = view.byteLength - END_BYTES; offset >= first; offset--) {
    if (view.getUint32(offset, true) === END_OF_DIRECTORY) return offset;
  }
  throw new ArchiveError("damaged");
}

async function inflate(packed: Uint8Array<ArrayBuffer>, method: number): Promise<Uint8Array<ArrayBuffer>> {
  if (method !== DEFLATED) throw new ArchiveError("damaged");
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = stream.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    bytes += part.value.length;
    if (bytes > MAX_UNPACKED_BYTES) throw new ArchiveError("tooLarge");
    chunks.push(part.value);
  }
  return concatenate(chunks);
}

/** Pack entries without compression. */
export function writeZip(entries: Entry[]): Uint8Array<ArrayBuffer> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  const directory: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (const { path, data } of entries) {
    const name = new TextEncoder().encode(path);
    const crc = crc32(data);
    const local = new DataView(new ArrayBuffer(30));
    local.setUint32(0, LOCAL_HEADER, true);
    local.setUint16(4, 20, true);
    writeShared(local, 6, crc, data.length, name.length);
    const central = new DataView(new ArrayBuffer(46));
    central.setUint32(0, CENTRAL_HEADER, true);
    central.setUint16(4, 20, true);
    central.setUint16(6, 20, true);
    writeShared(central, 8, crc, data.length, name.length);
    central.setUint32(42, offset, true);
    chunks.push(new Uint8Array(local.buffer), name, data);
    directory.push(new Uint8Array(central.buffer), name);
    offset += 30 + name.length + data.length;
  }
  const directoryBytes = directory.reduce((sum, chunk) => sum + chunk.length, 0);
  const end = new DataView(new ArrayBuffer(END_BYTES));
  end.setUint32(0, END_OF_DIRECTORY, true);
  end.setUint16(8, entries.length, true);
  end.setUint16(10, entries.length, true);
  end.setUint32(12, directoryBytes, true);
  end.setUint32(16, offset, true);
  return concatenate([...chunks, ...directory, new Uint8Array(end.buffer)]);
}

/** Pack files into an archive. */
export async function packFiles(files: { path: string; file: File }[]): Promise<Uint8Array<ArrayBuffer>> {
  const read = async ({ path, file }: { path: string; file: File }): Promise<Entry> => ({
    path,
    data: new Uint8Array(await file.arrayBuffer()),
  });
  return writeZip(await Promise.all(files.map(read)));
}

/** Write the fields that a local and a central header share, from the flags on. */
function writeShared(view: DataView, at: number, crc: number, bytes: number, nameBytes: number): void {
  view.setUint16(at, UTF8_FLAG, true);
  view.setUint16(at + 2, STORED, true);
  view.setUint16(at + 6, DOS_DATE, true);
  view.setUint32(at + 8, crc, true);
  view.setUint32(at + 12, bytes, true);
  view.setUint32(at + 16, bytes, true);
  view.setUint16(at + 20, nameBytes, true);
}

function concatenate(chunks: Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> {
  const result = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    result.set(chunk, offset);
    offset += chunk.length;
  }
  return result;
}
