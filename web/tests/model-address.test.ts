import { expect, test } from "vitest";

import { readLimited, readModelAddress } from "../src/model-address";

test("a link names a model", () => {
  const address = readModelAddress("?url=https://models.example/parts/a%20part.stl?version=2&lang=de");
  expect(address).toEqual({ url: new URL("https://models.example/parts/a%20part.stl?version=2"), name: "a part.stl" });
  expect(readModelAddress("?embed=1")).toBeNull();
});

test.each([
  "part.stl",
  "https://",
  "https://models.example/",
  "file:///etc/passwd",
  "data:text/plain,x",
  "blob:https://a.example/b",
  "https://user:secret@models.example/part.stl",
])("%s is not the address of a model", (text) => {
  expect(readModelAddress(`?url=${encodeURIComponent(text)}`)).toBe("invalid");
});

test.each([
  ["a%2F..%2Fb.stl", "a_.._b.stl"],
  ["%E0%A4%A.stl", "%E0%A4%A.stl"],
])("the name of %s has no folders", (path, name) => {
  expect(readModelAddress(`?url=${encodeURIComponent(`https://models.example/${path}`)}`)).toMatchObject({ name });
});

test("a response above the limit is not read to its end", async () => {
  expect(await readLimited(new Response(new Uint8Array(100)), 99)).toBeNull();
  const stated = new Response(new Uint8Array(10), { headers: { "Content-Length": "1000" } });
  expect(await readLimited(stated, 99)).toBeNull();
  expect((await readLimited(new Response(new Uint8Array(100)), 100))?.size).toBe(100);
});
