import { Ray, Vector3 } from "three";
import { expect, test } from "vitest";

import { moveTo, readPlanes, toPosition, writePlanes } from "../src/cut-planes";
import { nearestOnLine } from "../src/viewer/drag";

const span = { min: 5, max: 25, offset: 10 };

test("planes are read as the service reads them", () => {
  const planes = readPlanes("z=50%, x=-3.5");
  expect(planes).toEqual([
    { axis: "z", value: 50, isPercent: true },
    { axis: "x", value: -3.5, isPercent: false },
  ]);
  expect(writePlanes(planes)).toBe("z=50%,x=-3.5");
  for (const text of ["", "z", "z=", "a=1", "z=1,,x=2", "z=50%%"]) expect(readPlanes(text)).toEqual([]);
});

test("a plane is where the view shows it", () => {
  const [percent, millimeters] = readPlanes("z=50%,z=20");
  if (!percent || !millimeters) throw new Error("no planes");
  expect(toPosition(percent, span)).toBe(15);
  expect(toPosition(millimeters, span)).toBe(10);
  expect(moveTo(percent, 20, span).value).toBe(75);
  expect(moveTo(millimeters, 20, span).value).toBe(30);
});

test("a plane stays inside of the model", () => {
  const [percent, millimeters] = readPlanes("z=50%,z=20");
  if (!percent || !millimeters) throw new Error("no planes");
  expect([moveTo(percent, 99, span).value, moveTo(percent, -99, span).value]).toEqual([99.9, 0.1]);
  expect([moveTo(millimeters, 99, span).value, moveTo(millimeters, -99, span).value]).toEqual([35, 15]);
});

test("a handle follows the pointer along its line", () => {
  const up = new Vector3(0, 0, 1);
  const ray = new Ray(new Vector3(3, -10, 7), new Vector3(0, 1, 0));
  expect(nearestOnLine(new Vector3(0, 0, 2), up, ray)).toBeCloseTo(5);
  expect(nearestOnLine(new Vector3(0, 0, 2), up, new Ray(new Vector3(), up))).toBeNull();
  const oblique = new Ray(new Vector3(0, -10, 10), new Vector3(0, 1, -1).normalize());
  expect(nearestOnLine(new Vector3(), up, oblique)).toBeCloseTo(0);
});
