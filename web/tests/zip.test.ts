import { deflateRawSync } from "node:zlib";
import { expect, test } from "vitest";

import { crc32, isZip, readZip, writeZip } from "../src/zip";

const bytes = (text: string) => new TextEncoder().encode(text);

test("the checksum is that of the format", () => {
  expect(crc32(bytes("123456789"))).toBe(0xcbf43926);
});

test("an archive that was written is read again", async () => {
  const entries = [
    { path: "folder/a.obj", data: bytes("v 0 0 0") },
    { path: "ü.mtl", data: bytes("") },
  ];
  const archive = writeZip(entries);
  expect(isZip(archive)).toBe(true);
  expect(await readZip(archive)).toEqual(entries);
});

test("a compressed entry is unpacked", async () => {
  const data = bytes("solid ".repeat(1000));
  const packed = new Uint8Array(deflateRawSync(data));
  const stored = writeZip([{ path: "a.stl", data: packed }]);
  const view = new DataView(stored.buffer);
  const directory = view.getUint32(stored.length - 6, true);
  view.setUint16(8, 8, true);
  view.setUint16(directory + 10, 8, true);
  view.setUint32(directory + 24, data.length, true);
  expect(await readZip(stored)).toEqual([{ path: "a.stl", data }]);
});

test("a damaged archive is rejected", async () => {
  const archive = writeZip([{ path: "a.stl", data: bytes("solid") }]);
  await expect(readZip(archive.slice(0, -10))).rejects.toThrow("damaged");
});

test("an archive with damaged content, or whose directory points beyond its end, is rejected", async () => {
  const archive = writeZip([{ path: "a.stl", data: bytes("solid") }]);
  const directory = new DataView(archive.buffer).getUint32(archive.length - 6, true);
  const compressed = archive.slice();
  new DataView(compressed.buffer).setUint16(directory + 10, 8, true);
  await expect(readZip(compressed)).rejects.toMatchObject({ defect: "damaged" });
  const beyond = archive.slice();
  new DataView(beyond.buffer).setUint32(archive.length - 6, 1e9, true);
  await expect(readZip(beyond)).rejects.toMatchObject({ defect: "damaged" });
});

test("an encrypted archive is rejected", async () => {
  const archive = writeZip([{ path: "a.stl", data: bytes("solid") }]);
  const view = new DataView(archive.buffer);
  view.setUint16(view.getUint32(archive.length - 6, true) + 8, 1, true);
  await expect(readZip(archive)).rejects.toThrow("encrypted");
});
