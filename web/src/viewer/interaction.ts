/** What clicks and keys do in the view. */

import { Vector2 } from "three";

import type { Measuring } from "./measuring";
import { VIEW_NAMES, type ViewName, type ViewOptions } from "./options";
import type { Hit } from "./picking";
import type { Picture } from "./picture";
import { Pointer, type Scenery } from "./pointer";
import { layOnBed } from "./posing";
import type { Shown } from "./shown";
import { carriesModel, outwardOf, type Sides } from "./sides";

const KEY_TURN_RAD = Math.PI / 18;
const KEY_ZOOM_RATIO = 1.15;
/** Turn and tilt of the arrow keys. */
const KEY_TURNS: Partial<Record<string, [turnRad: number, tiltRad: number]>> = {
  ArrowLeft: [-KEY_TURN_RAD, 0],
  ArrowRight: [KEY_TURN_RAD, 0],
  ArrowUp: [0, -KEY_TURN_RAD],
  ArrowDown: [0, KEY_TURN_RAD],
};
/** Pixels that a pointer may move between press and release of a click. */
const CLICK_PIXELS = 5;

/** View on which clicks and keys act. */
export interface Stage extends Scenery {
  readonly shown: Shown;
  readonly measuring: Measuring;
  readonly sides: Sides;
  readonly options: ViewOptions;
  color: (name: string, fallback: string) => string;
  drawMarks: () => void;
  invalidate: () => void;
  fit: () => void;
  setView: (name: ViewName) => void;
  onLay: (angles: [x: number, y: number] | null) => void;
  onSelect: (part: number | null) => void;
  onKey: (key: string) => boolean;
}

export class Interaction {
  readonly pointer: Pointer;
  private readonly pressed = new Vector2();
  private readonly abort = new AbortController();

  constructor(private readonly view: Stage) {
    this.pointer = new Pointer(view);
    const { canvas } = view;
    const { signal } = this.abort;
    canvas.addEventListener("pointerdown", (event) => this.pressed.set(event.clientX, event.clientY), { signal });
    canvas.addEventListener("pointerup", (event) => this.click(event), { signal });
    canvas.addEventListener("pointermove", (event) => this.hover(event), { signal });
    canvas.addEventListener("pointerleave", () => this.showSide(null), { signal });
    canvas.addEventListener("dblclick", (event) => this.focus(event), { signal });
    canvas.addEventListener("keydown", (event) => this.press(event), { signal });
  }

  dispose(): void {
    this.abort.abort();
  }

  private click(event: PointerEvent): void {
    const isDrag = this.pressed.distanceTo(new Vector2(event.clientX, event.clientY)) > CLICK_PIXELS;
    if (!isDrag && event.button === 0) this.pickPoint(event.clientX, event.clientY);
  }

  private pickPoint(clientX: number, clientY: number): void {
    const { view } = this;
    const { tool } = view.options;
    const found = this.pointer.pick(clientX, clientY);
    if (!tool) {
      view.onSelect(found ? view.shown.findPart(found.hit, found.picture) : null);
      return;
    }
    if (!found) return;
    const { hit, picture } = found;
    if (tool === "lay-flat") {
      if (picture === view.shown.before) view.onLay(this.carriesModel(hit, picture) ? this.layOnBed(hit) : null);
      return;
    }
    if (tool === "thickness") view.measuring.measureWall(hit, picture, view.camera.current, view.shown.sphere.radius);
    else view.measuring.pick(tool, this.pointer.snap(found, clientX, clientY), picture);
    view.drawMarks();
  }

  private carriesModel(hit: Hit, picture: Picture): boolean {
    return carriesModel(picture, hit.point, outwardOf(hit, this.view.camera.current));
  }

  private layOnBed(hit: Hit): [x: number, y: number] {
    return layOnBed(outwardOf(hit, this.view.camera.current), this.view.shown.pose?.rotation_deg ?? [0, 0, 0]);
  }

  private hover({ clientX, clientY, buttons }: PointerEvent): void {
    if (this.view.options.tool !== "lay-flat" || buttons !== 0) return;
    const found = this.pointer.pick(clientX, clientY);
    this.showSide(found && found.picture === this.view.shown.before ? found.hit : null);
  }

  /** Mark the side that a click would lay on the bed. */
  private showSide(hit: Hit | null): void {
    if (hit) this.view.sides.show(hit, this.view.color("--accent", "#2f6fed"));
    else this.view.sides.hide();
    this.view.invalidate();
  }

  private focus(event: MouseEvent): void {
    const found = this.view.options.tool ? null : this.pointer.pick(event.clientX, event.clientY);
    if (found) this.view.camera.approach(found.hit.point);
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { camera } = this.view;
    const view = VIEW_NAMES[Number(event.key) - 1];
    const turn = KEY_TURNS[event.key];
    if (turn) camera.turn(...turn);
    else if (event.key === "+" || event.key === "=") camera.zoom(1 / KEY_ZOOM_RATIO);
    else if (event.key === "-") camera.zoom(KEY_ZOOM_RATIO);
    else if (event.key.toLowerCase() === "f") this.view.fit();
    else if (view) this.view.setView(view);
    else if (event.key === "Enter") this.pickMiddle();
    else if (!this.view.onKey(event.key.toLowerCase())) return;
    event.preventDefault();
  }

  private pickMiddle(): void {
    const { left, top, width, height } = this.view.canvas.getBoundingClientRect();
    this.pickPoint(left + width / (this.view.panes().length > 1 ? 4 : 2), top + height / 2);
  }
}
