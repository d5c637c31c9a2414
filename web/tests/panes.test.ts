import { expect, test } from "vitest";

import { listPanes } from "../src/viewer/panes";

const WIDTH = 400;
const list = (mode: "before" | "after" | "side-by-side" | "slider", after: string | null = "after") =>
  listPanes("before", after, { mode, slider: 0.5 }, WIDTH);

test("one model has the whole view", () => {
  const whole = { view: [0, WIDTH], clip: [0, WIDTH] };
  expect(list("before")).toEqual([{ content: "before", ...whole }]);
  expect(list("after")).toEqual([{ content: "after", ...whole }]);
  expect(list("side-by-side", null)).toEqual([{ content: "before", ...whole }]);
  expect(listPanes(null, null, { mode: "before", slider: 0 }, WIDTH)).toEqual([]);
});

test("both models have half of the view each", () => {
  expect(list("side-by-side")).toEqual([
    { content: "before", view: [0, 200], clip: [0, 200] },
    { content: "after", view: [200, 200], clip: [200, 200] },
  ]);
});

test("a slider divides one drawing", () => {
  const panes = listPanes("before", "after", { mode: "slider", slider: 0.25 }, WIDTH);
  expect(panes.map(({ view }) => view)).toEqual([
    [0, WIDTH],
    [0, WIDTH],
  ]);
  const [first, second] = panes.map(({ clip }) => clip);
  expect(first).toEqual([0, 109]);
  expect(second).toEqual([109, WIDTH - 109]);
});
