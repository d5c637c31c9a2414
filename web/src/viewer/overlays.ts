/** Highlights on a surface: lines that are seen through the model, and colored triangles. */

import {
  BufferAttribute,
  BufferGeometry,
  Color,
  DoubleSide,
  LineBasicMaterial,
  LineSegments,
  MeshBasicMaterial,
} from "three";
import { LineMaterial } from "three/examples/jsm/lines/LineMaterial.js";
import { LineSegments2 } from "three/examples/jsm/lines/LineSegments2.js";
import { LineSegmentsGeometry } from "three/examples/jsm/lines/LineSegmentsGeometry.js";

import { hasSlowWebGl } from "./speed";

const LINE_WIDTH_PIXELS = 3.5;
/** Lines up to which software WebGL draws them wide: 3 000 wide lines take longer than 20 000 triangles. */
const MAX_WIDE_LINES_CPU = 200;
/** Wide lines are drawn in front of the surfaces on which they lie. */
const IN_FRONT = { polygonOffset: true, polygonOffsetFactor: -4, polygonOffsetUnits: -200 } as const;
/** Opacity of a defect that the model hides. */
const HIDDEN_OPACITY = 0.22;
/** Highlighted triangles up to which their edges are drawn too, so that thin and covered ones can be seen. */
const MAX_OUTLINED_TRIANGLES = 2_000;

/** Return lines of several pixels: solid where they are seen, and faint where the model hides them. */
export function drawLines(positions: Float32Array, color: string): (LineSegments | LineSegments2)[] {
  const isThin = hasSlowWebGl() && positions.length / 6 > MAX_WIDE_LINES_CPU;
  return [true, false].map((isHidden) => {
    const look = { depthTest: !isHidden, transparent: true, opacity: isHidden ? HIDDEN_OPACITY : 1 };
    const lines = isThin ? toThinLines(positions, color, look) : toWideLines(positions, color, look);
    lines.renderOrder = isHidden ? 1 : 2;
    return lines;
  });
}

/** Return the edges of triangles, which are given by their corners; none of many triangles. */
export function outline(corners: Float32Array, color: string): (LineSegments | LineSegments2)[] {
  return corners.length <= 9 * MAX_OUTLINED_TRIANGLES ? drawLines(listEdges(corners), color) : [];
}

/** Return the ends of the edges of triangles that are given by their corners. */
function listEdges(corners: Float32Array): Float32Array {
  const ends: number[] = [];
  for (let start = 0; start < corners.length; start += 9) {
    const [a, b, c] = [0, 3, 6].map((offset) => corners.subarray(start + offset, start + offset + 3));
    for (const end of [a, b, b, c, c, a]) ends.push(...(end ?? []));
  }
  return new Float32Array(ends);
}

interface LineLook {
  depthTest: boolean;
  transparent: boolean;
  opacity: number;
}

function toThinLines(positions: Float32Array, color: string, look: LineLook): LineSegments {
  const geometry = new BufferGeometry().setAttribute("position", new BufferAttribute(positions, 3));
  return new LineSegments(geometry, new LineBasicMaterial({ color, ...look }));
}

/** WebGL draws its own lines one pixel wide. */
function toWideLines(positions: Float32Array, color: string, look: LineLook): LineSegments2 {
  const geometry = new LineSegmentsGeometry();
  geometry.setPositions(positions);
  const hex = new Color(color).getHex();
  return new LineSegments2(
    geometry,
    new LineMaterial({ color: hex, linewidth: LINE_WIDTH_PIXELS, ...look, ...IN_FRONT }),
  );
}

/** Return a material that covers the surface at the same place. */
export function toOverlay(color: string): MeshBasicMaterial {
  return new MeshBasicMaterial({
    color,
    side: DoubleSide,
    transparent: true,
    opacity: 0.85,
    polygonOffset: true,
    polygonOffsetFactor: -1,
    polygonOffsetUnits: -1,
  });
}
