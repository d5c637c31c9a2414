/** Command lines. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageError, findServer, listSwitches, readWords } from "../src/flags.js";
import type { Supported } from "../src/index.js";

const switches = new Set(["repair"]);

test("switches take no value, and other options one", () => {
  const line = readWords(["a.stl", "--repair", "b.3mf", "--target-height-mm=40", "--plane", "z=1", "--force"], switches);
  assert.deepEqual(line.paths, ["a.stl", "b.3mf"]);
  assert.deepEqual(line.options, { repair: true, target_height_mm: "40", plane: "z=1" });
  assert.deepEqual(line.own, { server: "", force: true, json: false });
  assert.deepEqual(readWords(["--repair=false"], switches).options, { repair: "false" });
  assert.throws(() => readWords(["--target"], switches), UsageError);
});

test("the server is that of the flag, or of the environment", () => {
  assert.equal(findServer(["a.stl", "--server", "http://a"], { MESHHUB_SERVER: "http://b" }), "http://a");
  assert.equal(findServer(["--server=http://a?b=c"], {}), "http://a?b=c");
  assert.equal(findServer([], { MESHHUB_SERVER: "http://b" }), "http://b");
  assert.equal(findServer([], {}), "http://127.0.0.1:8000");
});

test("options that are yes or no are switches", () => {
  const group = (properties: object) => ({ options: { properties } });
  const supported = {
    formats: { stl: group({ stl_ascii: { anyOf: [{ type: "boolean" }, { type: "null" }] } }) },
    operations: [group({ repair: { type: "boolean" }, cut_z_mm: { anyOf: [{ type: "number" }, { type: "null" }] } })],
    checks: [group({ slicer: { type: "boolean" }, checks: { type: "string" } })],
    options: { properties: { each_bed: { type: ["boolean", "null"] } } },
  };
  const found = listSwitches(supported as unknown as Supported);
  assert.deepEqual([...found].sort(), ["each_bed", "repair", "slicer", "stl_ascii"]);
});
