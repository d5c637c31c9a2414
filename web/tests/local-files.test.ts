import { beforeEach, expect, test, vi } from "vitest";

import type { Output } from "../src/api";
import type { Model } from "../src/intake";
import type { Item } from "../src/state/items";

const stored = new Map<string, string>();
const area = {
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: (key: string, value: string) => void stored.set(key, value),
  removeItem: (key: string) => void stored.delete(key),
};
vi.stubGlobal("window", { sessionStorage: area, localStorage: area });
vi.stubGlobal("navigator", { languages: [] });
vi.stubGlobal("history", { replaceState: () => undefined });
const place = { pathname: "/", search: "?lang=en", hash: "#token=t1", hostname: "127.0.0.1" };
vi.stubGlobal("location", { ...place, href: "http://127.0.0.1/" });

const sent: [string, string, unknown][] = [];
let opened: object[] = [];
const stream = new TransformStream<string, string>();
const write = stream.writable.getWriter();
const folders: Record<string, boolean> = {};
vi.mock("../src/requests", async (load) => {
  const real = await load<typeof import("../src/requests")>();
  return {
    ...real,
    send: (method: string, path: string, call?: { body?: unknown }) => {
      sent.push([method, path, call?.body]);
      return Promise.resolve({ data: new TextEncoder().encode("solid").buffer, header: () => null });
    },
    getJson: (path: string) => {
      if (!path.includes("/results")) return Promise.resolve(opened);
      sent.push(["POST", path, null]);
      const isWritable = folders[path.split("/")[2] ?? ""] ?? true;
      if (isWritable) return Promise.resolve({ path: `/models/${path.split("name=")[1] ?? ""}` });
      return Promise.reject(new real.ApiError("/models is not writable", "other"));
    },
    openStream: () => Promise.resolve(stream.readable.pipeThrough(new TextEncoderStream())),
  };
});
const saved: File[] = [];
let onSave: (file: File) => void = () => undefined;
vi.mock("../src/save", () => ({
  saveAll: (files: File[]) => void saved.push(...files),
  watchSaves: (callback: typeof onSave) => (onSave = callback),
}));
vi.mock("../src/api", () => ({ preview: () => new Promise(() => undefined) }));

const { followFiles, reportSaves, saveBeside } = await import("../src/state/local-files");
const { openModels, removeItem } = await import("../src/state/reading");
const { items, distinguish } = await import("../src/state/items");
const { banner } = await import("../src/state/failures");
const { isShown, keepShown } = await import("../src/shown-files");
const { groupModels } = await import("../src/intake");
const { writeZip } = await import("../src/zip");

beforeEach(() => {
  items.value = [];
  banner.value = null;
  sent.length = 0;
  saved.length = 0;
});

const makeModel = (name: string, change: Partial<Model> = {}): Model => ({
  name,
  file: new File(["solid"], name),
  companions: [],
  ...change,
});
const makeItem = (name: string, origin?: Model["origin"]): Item =>
  ({
    id: 0,
    model: makeModel(name, origin && { origin }),
    output: { file: new File(["x"], name) } as Output,
  }) as Item;

test("files without a folder are downloaded, and the page says so", async () => {
  const others = ["b.3mf", "c.3mf"].map((name) => makeItem(name));
  await saveBeside([makeItem("a.3mf", { id: 1, folder: "/models" }), ...others]);
  expect(sent.map(([, path]) => path)).toEqual(["local/files/1/results?name=a.3mf"]);
  expect(saved.map(({ name }) => name)).toEqual(["b.3mf", "c.3mf"]);
  expect(banner.value?.message).toMatch(/^2 results were downloaded: b.3mf, c.3mf. The app does not know the folder/);
});

test("a message names all results that cannot be saved", async () => {
  folders["7"] = false;
  const origin = { id: 7, folder: "/models" };
  await saveBeside([makeItem("a.3mf", origin), makeItem("b.3mf", { id: 1, folder: "/" }), makeItem("c.3mf", origin)]);
  await saveBeside([]);
  expect(banner.value?.message).toBe("a.3mf, c.3mf: /models is not writable");
  await saveBeside([makeItem("a.3mf", origin), makeItem("d.3mf")]);
  expect(banner.value?.advice).toContain("1 result was downloaded: d.3mf.");
});

test("models of one name in two archives and folders are separate, and a later version replaces its own", async () => {
  const pack = (...paths: string[]): File =>
    new File([writeZip(paths.map((path) => ({ path, data: new TextEncoder().encode("solid") })))], "zip");
  const read = async (id: number, name: string, ...paths: string[]): Promise<Model[]> => {
    const models = await groupModels([{ path: name, file: pack(...paths) }]);
    return models.map((model) => ({ ...model, origin: { id, folder: "/models" } }));
  };
  void openModels(await read(1, "a.zip", "part.stl", "left/part.stl", "right/part.stl"));
  void openModels(await read(2, "b.zip", "part.stl"));
  const [first] = items.value;
  expect(items.value.map(({ model }) => distinguish(model))).toEqual(["a.zip", "a.zip/left", "a.zip/right", "b.zip"]);
  void openModels(await read(3, "a.zip", "part.stl"));
  expect(items.value.map(({ model }) => model.origin?.id)).toEqual([3, 1, 1, 2]);
  expect(items.value[0]?.id).toBe(first?.id);
});

test("a file that is opened again has no picture, price or result of its earlier version", () => {
  const origin = { id: 1, folder: "/models" };
  void openModels([makeModel("a.stl", { origin })]);
  items.value = items.value.map((item) => ({ ...item, thumbnail: "data:", output: {} as Output }));
  void openModels([makeModel("a.stl", { origin: { ...origin, id: 2 } })]);
  expect(items.value).toMatchObject([{ thumbnail: null, output: null, quote: null }]);
});

test("a tab shows what it has shown before, what is new, and not what was removed", async () => {
  const describe = (id: number, closed = false) => ({ id, name: `${id}.stl`, folder: "/", companions: [], closed });
  keepShown(2);
  opened = [describe(1), describe(2, true), describe(3, true)];
  void followFiles();
  const names = (): string[] => items.value.map(({ model }) => model.name);
  await vi.waitFor(() => expect(names()).toEqual(["1.stl", "2.stl"]));
  await write.write(`: open\n\ndata: ${JSON.stringify([describe(2, true), describe(4)])}\n\n`);
  await vi.waitFor(() => expect(names()).toEqual(["1.stl", "2.stl", "4.stl"]));
  removeItem(items.value[0]?.id ?? 0);
  expect([1, 2, 3, 4].filter(isShown)).toEqual([2, 4]);
  expect(sent.filter(([method]) => method === "DELETE").map(([, path]) => path)).toEqual(["local/files/1"]);
});

test("files that the browser saves are reported by their content", async () => {
  reportSaves();
  onSave(new File(["abc"], "a.stl"));
  await vi.waitFor(() => expect(sent).toHaveLength(1));
  const [method, path, body] = sent[0] ?? [];
  expect([method, path]).toEqual(["POST", "local/downloads"]);
  expect(JSON.parse(await (body as File).text())).toEqual({
    size: 3,
    sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  });
});
