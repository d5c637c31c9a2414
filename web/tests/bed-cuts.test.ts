import { expect, test } from "vitest";

import { addCut, fitsIn, isBesideTooLarge, needsFurtherCuts, planCuts, readBed, type Spans } from "../src/bed-cuts";
import { readPlanes, writePlanes } from "../src/cut-planes";

const bed = { sides: [220, 220, 250], protrusion: 0 } satisfies ReturnType<typeof readBed>;

function spansOf(x: number, y: number, z: number, offset = 0): Spans {
  const [first, second, third] = [x, y, z].map((size) => ({ min: 0, max: size, offset }));
  if (!first || !second || !third) throw new Error("no spans");
  return [first, second, third];
}

test("a bed is read as the service reads it", () => {
  expect(readBed({ split_for_bed: "220 x 210×250" })).toEqual({ sides: [220, 210, 250], protrusion: 0 });
  for (const kind of ["pegs", "dovetail", "dowels", "none"]) {
    const { protrusion } = readBed({ split_for_bed: "220x220x250", split_for_bed_connectors: kind }) ?? {};
    expect(protrusion).toBe(kind === "pegs" || kind === "dovetail" ? 8 : 0);
  }
  for (const text of ["", "220", "220x220", "20x220x220", "220xax250", "220x220x220x220", "220x220xInfinity"]) {
    expect(readBed({ split_for_bed: text })).toBeNull();
  }
  expect(readBed({})).toBeNull();
});

test("a model is cut evenly along each axis on which it is larger than the bed", () => {
  expect(writePlanes(planCuts(bed, spansOf(500, 220, 300)))).toBe("x=166.6667,x=333.3333,z=150");
  // In the millimeters of the result, from the lower end of the model.
  expect(writePlanes(planCuts(bed, [{ min: -30, max: 270, offset: 5 }, ...rest(100)]))).toBe("x=125");
  expect(planCuts(bed, spansOf(220.0001, 220, 250))).toEqual([]);
  expect(planCuts(bed, spansOf(440.0001, 20, 20))).toHaveLength(1);
  expect(planCuts(bed, spansOf(441, 20, 20))).toHaveLength(2);
});

test("planned pieces leave room for connectors", () => {
  const withPegs = { ...bed, protrusion: 8 };
  expect(planCuts(withPegs, spansOf(424, 20, 20))).toHaveLength(1);
  expect(planCuts(withPegs, spansOf(430, 20, 20))).toHaveLength(2);
  // A piece without a cut above it has no connector.
  expect(planCuts(withPegs, spansOf(220, 220, 250))).toEqual([]);
});

test("more cuts than can be requested are not planned", () => {
  expect(planCuts(bed, spansOf(33 * 220, 20, 20))).toHaveLength(32);
  expect(planCuts(bed, spansOf(34 * 220, 20, 20))).toEqual([]);
});

test("planned cuts need no further ones", () => {
  for (const protrusion of [0, 8]) {
    for (const size of [220.5, 424, 430, 433.3333, 700, 1234.567]) {
      const room = { ...bed, protrusion };
      const spans = spansOf(size, size, size);
      expect(needsFurtherCuts(planCuts(room, spans), room, spans)).toBe(false);
      expect(fitsIn(room, spans)).toBe(false);
    }
  }
});

test("a plane beside a piece that is larger than the bed is known", () => {
  const spans = spansOf(600, 100, 100);
  const planes = readPlanes("x=400,x=150,x=50%,y=50");
  // From 0 to 150, 300, 400 and 600.
  expect(planes.map((plane) => isBesideTooLarge(plane, planes, bed, spans))).toEqual([false, false, false, false]);
  const moved = readPlanes("x=430,x=150,x=200,y=50");
  expect(moved.map((plane) => isBesideTooLarge(plane, moved, bed, spans))).toEqual([true, false, true, false]);
  expect(needsFurtherCuts(moved, bed, spans)).toBe(true);
  // The last piece has no connector above it.
  const exact = readPlanes("x=212,x=380");
  expect(needsFurtherCuts(exact, { ...bed, protrusion: 8 }, spans)).toBe(false);
  const tight = readPlanes("x=213,x=380");
  expect(tight.map((plane) => isBesideTooLarge(plane, tight, { ...bed, protrusion: 8 }, spans))).toEqual([true, false]);
});

test("an axis without a cut needs one, and a model that fits does not", () => {
  expect(needsFurtherCuts(readPlanes("x=150"), bed, spansOf(300, 300, 100))).toBe(true);
  expect(needsFurtherCuts([], bed, spansOf(220, 220, 250))).toBe(false);
  expect(fitsIn(bed, spansOf(220, 220, 250))).toBe(true);
});

test("a cut is added in the middle of the longest piece", () => {
  const span = { min: -10, max: 590, offset: 10 };
  expect(writePlanes(addCut([], "x", span))).toBe("x=300");
  expect(writePlanes(addCut(readPlanes("x=100,y=20,x=50%"), "x", span))).toBe("x=100,y=20,x=50%,x=450");
  // A plane beside the model makes no piece.
  expect(writePlanes(addCut(readPlanes("x=900"), "x", span))).toBe("x=900,x=300");
});

function rest(size: number): [Spans[1], Spans[2]] {
  const span = { min: 0, max: size, offset: 0 };
  return [span, span];
}
