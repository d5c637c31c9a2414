import { expect, test } from "vitest";

import { askOnce, isKept } from "../src/answers";

const model = () => ({ name: "a.stl", file: new File([], "a.stl"), companions: [] });

test("a question is asked once for each model", async () => {
  const [first, second] = [model(), model()];
  let count = 0;
  const ask = () => Promise.resolve(++count);
  expect(await askOnce(first, "check", ask)).toBe(1);
  expect(await askOnce(first, "check", ask)).toBe(1);
  expect(await askOnce(first, "quote", ask)).toBe(2);
  expect(await askOnce(second, "check", ask)).toBe(3);
  expect([isKept(first, "check"), isKept(second, "quote")]).toEqual([true, false]);
});

test("a failure is not kept", async () => {
  const asked = model();
  await expect(askOnce(asked, "check", () => Promise.reject(new Error("offline")))).rejects.toThrow("offline");
  expect(await askOnce(asked, "check", () => Promise.resolve("pass"))).toBe("pass");
});

test("the answers that were used last are kept", async () => {
  const asked = model();
  for (let number = 0; number < 8; number++) await askOnce(asked, String(number), () => Promise.resolve(number));
  await askOnce(asked, "0", () => Promise.reject(new Error("asked again")));
  await askOnce(asked, "8", () => Promise.resolve(8));
  expect(["0", "1", "2"].map((question) => isKept(asked, question))).toEqual([true, false, true]);
});
