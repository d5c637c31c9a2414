/** A cube in the corner of the 3D view that turns with the model; its sides, edges and corners choose a direction. */

import { t } from "../i18n";
import type { Triple } from "../types";
import { VIEWS } from "../viewer/options";
import {
  DIRECTIONS,
  isSeen,
  listCells,
  nameDirection,
  nearestDirection,
  placeSide,
  project,
  SIDES,
  turnDirection,
  type Orientation,
  type Side,
} from "../viewer/view-cube";
import { orientation, viewer } from "./view-state";

/** Half of the edge of the cube, and its part that belongs to the side; the rest belongs to edges and corners. */
const HALF = 30;
const INNER = 18;
/** Half of the width and height of the picture; the axes reach farther than the cube. */
const REACH = 66;
/** Length of an axis from the corner of the cube, and distance of its letter. */
const AXIS = 2.55;
const LETTER = 2.85;
/** Corner from which the axes start, a little outside of the cube. */
const ORIGIN: Triple = [-1.08, -1.08, -1.08];

export function ViewCube() {
  const camera = orientation.value;
  if (!camera) return null;
  const nearest = nearestDirection(camera);
  const turn = (event: KeyboardEvent): void => {
    const next = event.key === "Home" ? VIEWS.iso : turnDirection(nearest, event.key);
    if (!next) return;
    event.preventDefault();
    viewer.value?.lookFrom(next);
  };
  return (
    <div
      class="view-cube"
      role="slider"
      tabIndex={0}
      aria-label={t("direction")}
      aria-valuemin={0}
      aria-valuemax={DIRECTIONS.length - 1}
      aria-valuenow={DIRECTIONS.indexOf(nearest)}
      aria-valuetext={describe(nearest)}
      onKeyDown={turn}
    >
      <svg viewBox={`${-REACH} ${-REACH} ${2 * REACH} ${2 * REACH}`} aria-hidden="true">
        <Axes camera={camera} areInFront={false} />
        {SIDES.filter((side) => isSeen(side, camera)).map((side) => (
          <CubeSide key={side.name} side={side} camera={camera} />
        ))}
        <Axes camera={camera} areInFront={true} />
      </svg>
    </div>
  );
}

function describe(direction: Triple): string {
  return nameDirection(direction)
    .map((name) => t(name))
    .join(", ");
}

function CubeSide({ side, camera }: { side: Side; camera: Orientation }) {
  const borders = [-HALF, -INNER, INNER, HALF];
  return (
    <g transform={`matrix(${placeSide(side, camera, HALF).join(" ")})`}>
      {listCells(side).map((direction, index) => {
        const [left = 0, right = 0] = borders.slice(index % 3);
        const [top = 0, bottom = 0] = borders.slice(Math.floor(index / 3));
        return (
          <rect
            key={index}
            class="cube-cell"
            x={left}
            y={top}
            width={right - left}
            height={bottom - top}
            onClick={() => viewer.value?.lookFrom(direction)}
          >
            <title>{describe(direction)}</title>
          </rect>
        );
      })}
      <rect class="cube-border" x={-HALF} y={-HALF} width={2 * HALF} height={2 * HALF} rx="3" />
      <text class="cube-name" y="4">
        {t(side.name)}
      </text>
    </g>
  );
}

/** Axes from the lower corner at the front left: those that the cube hides, or those in front of it. */
function Axes({ camera, areInFront }: { camera: Orientation; areInFront: boolean }) {
  const axes = (["x", "y", "z"] as const).filter((_, axis) => {
    // The edge of the cube is seen with one of the two sides that meet there.
    const sides = [0, 1, 2].filter((other) => other !== axis);
    const isInFront = sides.some((other) =>
      isSeen({ normal: [0, 1, 2].map((each) => (each === other ? -1 : 0)) as Triple }, camera),
    );
    return isInFront === areInFront;
  });
  const at = (axis: string, length: number): [number, number] => {
    const point = ORIGIN.map((value, index) => (value + ("xyz"[index] === axis ? length : 0)) * HALF) as Triple;
    return project(point, camera);
  };
  return (
    <>
      {axes.map((axis) => {
        const [[x1, y1], [x2, y2], [x, y]] = [at(axis, 0), at(axis, AXIS), at(axis, LETTER)];
        return (
          <g key={axis} class={`cube-axis axis-${axis}`}>
            <line x1={x1} y1={y1} x2={x2} y2={y2} />
            <text x={x} y={y + 4}>
              {axis.toUpperCase()}
            </text>
          </g>
        );
      })}
    </>
  );
}
