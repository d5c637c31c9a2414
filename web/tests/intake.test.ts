import { expect, test } from "vitest";

import { extensionOf, groupModels, stemOf } from "../src/intake";
import { writeZip } from "../src/zip";

const at = (path: string) => ({ path, file: new File(["x"], path.replace(/^.*\//, "")) });

test("extensions and stems", () => {
  expect(extensionOf("a.b.STL")).toBe("stl");
  expect(extensionOf("folder.x/noextension")).toBe("");
  expect(stemOf("a.b.STL")).toBe("a.b");
});

test("materials and textures of a folder belong to its OBJ, with their paths", async () => {
  const models = await groupModels([
    at("car/car.obj"),
    at("car/car.mtl"),
    at("car/maps/a.png"),
    at("bike/b.mtl"),
    at("c.stl"),
  ]);
  expect(models.map(({ name, companions }) => [name, companions.map(({ path }) => path)])).toEqual([
    ["car.obj", ["car.mtl", "maps/a.png"]],
    ["c.stl", []],
  ]);
});

test("a model gets what it mentions of a folder beside its own, but nothing of another model", async () => {
  const write = (path: string, text: string) => ({ path, file: new File([text], path.replace(/^.*\//, "")) });
  const models = await groupModels([
    write("source/car.obj", "mtllib car.mtl"),
    write("source/car.mtl", "map_Kd ../textures/paint.png\nmap_Bump rust.png"),
    write("bike/bike.dae", "paint.png"),
    ...["bike/rust.png", "textures/paint.png", "textures/photo.png"].map(at),
  ]);
  expect(models.map(({ name, companions }) => [name, companions.map(({ path }) => path)])).toEqual([
    ["car.obj", ["car.mtl", "paint.png"]],
    ["bike.dae", ["paint.png"]],
  ]);
});

test("a model of any other format gets the companions that it mentions, and those that they mention", async () => {
  const write = (path: string, text: string) => ({ path, file: new File([text], path.replace(/^.*\//, "")) });
  const models = await groupModels([
    write("car/car.dae", "<init_from>maps/Gr%C3%BCn%20100%.PNG</init_from><extra>car.mtl</extra>"),
    write("car/wheel.stl", "solid"),
    write("car/car.mtl", "map_Kd rust.jpg"),
    ...["car/maps/grün 100%.png", "car/rust.jpg", "car/photo.jpg"].map(at),
  ]);
  expect(models.map(({ name, companions }) => [name, companions.map(({ path }) => path)])).toEqual([
    ["car.dae", ["car.mtl", "maps/grün 100%.png", "rust.jpg"]],
    ["wheel.stl", []],
  ]);
});

test("files of a ZIP are models; those of the system are skipped", async () => {
  const data = new TextEncoder().encode("solid");
  const archive = writeZip(
    ["parts/a.stl", "parts/b.stl", "__MACOSX/parts/._a.stl", ".DS_Store"].map((path) => ({ path, data })),
  );
  const models = await groupModels([{ path: "parts.zip", file: new File([archive], "parts.zip") }]);
  expect(models.map(({ name }) => name)).toEqual(["a.stl", "b.stl"]);
});

test("a ZIP that is none, or holds no files, is rejected by name", async () => {
  const noFiles = writeZip([{ path: ".DS_Store", data: new Uint8Array(1) }]);
  const empty = { path: "empty.zip", file: new File([noFiles], "empty.zip") };
  await expect(groupModels([at("broken.zip")])).rejects.toMatchObject({ path: "broken.zip", defect: "damaged" });
  await expect(groupModels([empty])).rejects.toMatchObject({ path: "empty.zip", defect: "empty" });
});

test("a texture alone is sent, so that the service explains what is missing", async () => {
  expect((await groupModels([at("a.png")])).map(({ name }) => name)).toEqual(["a.png"]);
});

test("two archives with equal paths keep their own materials", async () => {
  const pack = (name: string, text: string) => {
    const data = new TextEncoder().encode(text);
    const entries = [
      { path: "car.obj", data: new TextEncoder().encode("mtllib car.mtl") },
      { path: "car.mtl", data },
    ];
    return { path: name, file: new File([writeZip(entries)], name) };
  };
  const models = await groupModels([pack("red.zip", "newmtl red"), pack("blue.zip", "newmtl blue")]);
  expect(models.map(({ path, companions }) => [path, companions.map((each) => each.path)])).toEqual([
    ["red.zip/car.obj", ["car.mtl"]],
    ["blue.zip/car.obj", ["car.mtl"]],
  ]);
  expect(await models[1]?.companions[0]?.file.text()).toBe("newmtl blue");
});

test("an archive of textures belongs to the model beside it", async () => {
  const textures = writeZip([{ path: "car.mtl", data: new TextEncoder().encode("newmtl red") }]);
  const models = await groupModels([
    { path: "car.obj", file: new File(["mtllib car.mtl"], "car.obj") },
    { path: "textures.zip", file: new File([textures], "textures.zip") },
  ]);
  expect(models.map(({ name, companions }) => [name, companions.map(({ path }) => path)])).toEqual([
    ["car.obj", ["car.mtl"]],
  ]);
});
