import { Box3, Vector3 } from "three";
import { expect, test } from "vitest";

import { readPose, toRotation, type Pose } from "../src/pose";
import type { Triple } from "../src/types";
import { findFlatRegion } from "../src/viewer/flat-region";
import { layOnBed, placePose, turnQuarter } from "../src/viewer/posing";

const still: Pose = { mirror: null, rotation_deg: [0, 0, 0], fit_mm: null, scale: 1, height_mm: null };
const box = new Box3(new Vector3(10, 20, 5), new Vector3(50, 40, 15));

function place(change: Partial<Pose>): { box: Box3; offset: number[] } {
  const { placement, offset } = placePose({ ...still, ...change }, (motion) => box.clone().applyMatrix4(motion));
  return { box: box.clone().applyMatrix4(placement), offset: offset.toArray() };
}

function expectBox({ box: { min, max } }: { box: Box3 }, low: Triple, high: Triple): void {
  low.forEach((value, axis) => expect(min.getComponent(axis)).toBeCloseTo(value));
  high.forEach((value, axis) => expect(max.getComponent(axis)).toBeCloseTo(value));
}

test("options that do not move the model have no pose", () => {
  expect(readPose({ repair: true })).toBeNull();
  expect(readPose({ rotate_x_deg: "", target_height_mm: "" })).toBeNull();
  expect(readPose({ rotate_x_deg: "abc", target_height_mm: "-5", fit_mm: "1x2" })).toBeNull();
});

test.each(["80x60x40", "80X60X40", " 80 × 60 × 40 "])("a box is read as the service reads it: %s", (text) => {
  expect(readPose({ fit_mm: text })?.fit_mm).toEqual([80, 60, 40]);
});

const mk4 = { id: "prusa-mk4", name: "Prusa MK4", volume_mm: [250, 210, 220] satisfies Triple };

test.each(["prusa-mk4", "Prusa  MK4", "mk4", "MK4s"])("a box may be that of a printer: %s", (text) => {
  const printers = [{ ...mk4, aliases: ["mk4", "mk4s"] }];
  expect(readPose({ fit_mm: text }, printers)?.fit_mm).toEqual([250, 210, 220]);
  expect(readPose({ fit_mm: text })).toBeNull();
});

test("a printer of an older server has its id and its name", () => {
  expect(readPose({ fit_mm: "Prusa MK4" }, [mk4])?.fit_mm).toEqual([250, 210, 220]);
  expect(readPose({ fit_mm: "mk4" }, [mk4])).toBeNull();
});

test("a rotation that the server chooses is not shown", () => {
  expect(readPose({ rotate_x_deg: "90" })?.rotation_deg).toEqual([90, 0, 0]);
  expect(readPose({ rotate_x_deg: "90", lay_flat: true })).toBeNull();
  expect(readPose({ target_height_mm: "10", orient: true })).toBeNull();
});

test("the options of a rotation leave out the angles that are zero, and other turns", () => {
  expect(toRotation([90, -0.00001, 12.34567])).toEqual({
    lay_flat: undefined,
    orient: undefined,
    rotate_x_deg: "90",
    rotate_y_deg: undefined,
    rotate_z_deg: "12.3457",
  });
});

test("a turned model stays on its place of the ground", () => {
  expectBox(place({ rotation_deg: [90, 0, 0] }), [10, 25, 5], [50, 35, 25]);
  expectBox(place({ rotation_deg: [0, 0, 90] }), [20, 10, 5], [40, 50, 15]);
  expectBox(place({ mirror: "x" }), [10, 20, 5], [50, 40, 15]);
});

test("a scaled model grows from the ground, while the operation scales it about the origin", () => {
  const { offset, ...scaled } = place({ height_mm: 20 });
  expectBox(scaled, [-10, 10, 5], [70, 50, 25]);
  expect(offset).toEqual([30, 30, 5]);
  expectBox(place({ scale: 0.5 }), [20, 25, 5], [40, 35, 10]);
  expectBox(place({ fit_mm: [80, 80, 80] }), [-10, 10, 5], [70, 50, 25]);
  expectBox(place({ scale: 7, height_mm: 20 }), [-10, 10, 5], [70, 50, 25]);
});

test.each([
  [1, 0, 0],
  [0, -1, 0],
  [0, 0, 1],
  [0, 0, -1],
  [0.6, 0, 0.8],
  [-0.48, 0.64, 0.6],
] as Triple[])("a side that looks to %s, %s, %s is laid on the bed", (x, y, z) => {
  const side = new Vector3(x, y, z);
  const angles: Triple = [...layOnBed(side, [0, 0, 0]), 0];
  const { placement } = placePose({ ...still, rotation_deg: angles }, (motion) => box.clone().applyMatrix4(motion));
  expect(
    side
      .clone()
      .transformDirection(placement)
      .distanceTo(new Vector3(0, 0, -1)),
  ).toBeCloseTo(0);
  // Seen in another pose, it is the same side.
  const turned: Triple = [30, -50, 70];
  const other = placePose({ ...still, rotation_deg: turned }, (motion) => box.clone().applyMatrix4(motion));
  const again = layOnBed(side.clone().transformDirection(other.placement), turned);
  expect(again[0]).toBeCloseTo(angles[0]);
  expect(again[1]).toBeCloseTo(angles[1]);
});

test("quarter turns add up", () => {
  expect(turnQuarter("z", [90, 0, 0]).map((angle) => Math.round(angle) + 0)).toEqual([90, 0, 90]);
  let angles: Triple = [0, 0, 0];
  for (let count = 0; count < 3; count++) angles = turnQuarter("y", turnQuarter("x", angles));
  const turn = new Vector3(1, 2, 3);
  const { placement } = placePose({ ...still, rotation_deg: angles }, (motion) => box.clone().applyMatrix4(motion));
  expect(turn.clone().transformDirection(placement).distanceTo(turn.clone().normalize())).toBeCloseTo(0);
});

test("a flat side is all triangles of its plane that look to the same side", () => {
  // Two triangles of a square, one beside it at another height, one that looks down, one upright.
  const square = [0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0];
  const others = [2, 0, 0.1, 3, 0, 0.1, 3, 1, 0.1, 4, 0, 0, 5, 1, 0, 5, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1];
  const { triangles, corners } = findFlatRegion([...square, ...others], null, 1, 5);
  expect([...triangles]).toEqual([0, 1]);
  expect([...corners]).toEqual(square);
  const indexed = findFlatRegion([0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0], [0, 1, 2, 0, 2, 3], 0, 1.5);
  expect([...indexed.triangles]).toEqual([0, 1]);
});
