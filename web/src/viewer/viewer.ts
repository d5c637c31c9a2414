/** Interactive view of one model, or of a model before and after a conversion. */

import {
  AmbientLight,
  Box3,
  BufferGeometry,
  DirectionalLight,
  Float32BufferAttribute,
  Group,
  HemisphereLight,
  Line,
  LineBasicMaterial,
  LineSegments,
  Mesh,
  OrthographicCamera,
  PerspectiveCamera,
  Plane,
  PMREMGenerator,
  Points,
  PointsMaterial,
  Raycaster,
  Scene,
  Sphere,
  Spherical,
  Vector2,
  Vector3,
  WebGLRenderer,
  type Intersection,
  type Material,
  type Object3D,
} from "three";
import { acceleratedRaycast, MeshBVH } from "three-mesh-bvh";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { RoomEnvironment } from "three/examples/jsm/environments/RoomEnvironment.js";

import type { Bed } from "../beds";
import type { Triple } from "../types";
import { Beds } from "./beds";
import { fitOutline } from "./fit";
import { Ground } from "./ground";
import { SLIDER_INSET_PIXELS } from "./look";
import { Marker } from "./marker";
import { measure, POINT_COUNTS, type Point, type Tool } from "./measure";
import type { Picture } from "./picture";
import { hasSlowWebGl } from "./speed";

export type Mode = "before" | "after" | "side-by-side" | "slider";
export type ViewName = "iso" | "front" | "back" | "left" | "right" | "top" | "bottom";
export type Axis = "x" | "y" | "z";

export interface Section {
  axis: Axis;
  /** Position between the lower and the upper side of the model, 0 to 1. */
  position: number;
  isFlipped: boolean;
}

export interface ViewOptions {
  mode: Mode;
  slider: number;
  wireframe: boolean;
  textures: boolean;
  defects: boolean;
  changes: boolean;
  box: boolean;
  bed: readonly [number, number, number] | null;
  section: Section | null;
  isOrthographic: boolean;
  tool: Tool | null;
}

/** Place that the view marks, with a text beside it. */
export interface MarkedPlace {
  position_mm: Triple;
  color: string;
  label: string;
}

export const VIEWS: Record<ViewName, readonly [number, number, number]> = {
  iso: [1, -1.25, 0.85],
  front: [0, -1, 0],
  back: [0, 1, 0],
  left: [-1, 0, 0],
  right: [1, 0, 0],
  top: [0, 0, 1],
  bottom: [0, 0, -1],
};

const FIELD_OF_VIEW_DEG = 35;
const FIT_RATIO = 1.12;
const FLIGHT_MS = 450;
/** Milliseconds per frame above which the picture gets fewer pixels while it moves. */
const SLOW_FRAME_MS = 45;
/** Slow frames in a row after which the picture gets fewer pixels. */
const SLOW_FRAME_COUNT = 2;
const MIN_PIXEL_RATIO = 0.4;
/** Milliseconds without motion after which the picture gets all its pixels again. */
const REST_MS = 250;
const KEY_TURN_RAD = Math.PI / 18;
const KEY_ZOOM_RATIO = 1.15;
/** Pixels within which a click takes the corner of a triangle. */
const SNAP_PIXELS = 9;
/** Pixels that a pointer may move between press and release of a click. */
const CLICK_PIXELS = 5;
/** Blur of the room in which a model is lit, in radians; filaments are not mirrors. */
const ROOM_BLUR_RAD = 0.04;
const ROOM_INTENSITY = 0.5;
const ROOM_LAMP_INTENSITY = 1.5;
/** Share of the view, across or up, that the outline of the model fills. */
const OUTLINE_RATIO = 1.1;
/** Points of a model by which its outline is measured. */
const OUTLINE_POINTS = 10_000;
/** Radius around a tiny place that the view shows, per radius of the model. */
const MIN_PLACE_RATIO = 0.12;
/** Width and height of a thumbnail. */
const THUMBNAIL_PIXELS: [number, number] = [144, 108];
const AXES: Axis[] = ["x", "y", "z"];
/** Tangent of the angle around a direction that must be free of other surfaces. */
const CLEAR_RATIO = 0.35;
/** Directions from which a place may be looked at; those from above and below are a little off the axis. */
const DIRECTIONS = [-1, 0, 1].flatMap((x) =>
  [-1, 0, 1].flatMap((y) =>
    [-1, -0.4, 0.4, 1].map((z) => new Vector3(x, x === 0 && y === 0 ? -0.1 : y, z).normalize()),
  ),
);

interface Pane {
  picture: Picture;
  /** Rectangle of the drawing in pixels: left, width. */
  view: [left: number, width: number];
  clip: [left: number, width: number];
}

interface Measurement {
  tool: Tool;
  points: Point[];
  value: number;
}

export class Viewer {
  private readonly renderer: WebGLRenderer;
  private readonly scene = new Scene();
  private readonly perspective = new PerspectiveCamera(FIELD_OF_VIEW_DEG, 1, 0.1, 10_000);
  private readonly orthographic = new OrthographicCamera();
  private camera: PerspectiveCamera | OrthographicCamera = this.perspective;
  private readonly controls: OrbitControls;
  private readonly lamp = new DirectionalLight(0xffffff, 2.1);
  private readonly extras = new Group();
  private readonly beds = new Beds();
  private readonly ground = new Ground();
  private readonly marker = new Marker();
  private marked: MarkedPlace | null = null;
  private readonly labels: HTMLElement;
  private readonly planes: Plane[] = [];
  /** Model that was read, and its conversion; heat maps may stand for both. */
  private model: Picture | null = null;
  private output: Picture | null = null;
  private before: Picture | null = null;
  private after: Picture | null = null;
  private options: ViewOptions = {
    mode: "before",
    slider: 0.5,
    wireframe: false,
    textures: true,
    defects: true,
    changes: true,
    box: false,
    bed: null,
    section: null,
    isOrthographic: false,
    tool: null,
  };
  private readonly box = new Box3();
  private readonly sphere = new Sphere();
  private frame = 0;
  private flight: { start: number; from: [Vector3, Vector3]; to: [Vector3, Vector3] } | null = null;
  private pixelRatio = 1;
  /** Pixel ratio that the last motion needed; the next one starts with it. */
  private motionRatio = 1;
  /** Without a graphics card, smooth edges cost too much while the model moves: at rest it is drawn twice as large. */
  private readonly restRatio = hasSlowWebGl() ? 2 / Math.min(2, window.devicePixelRatio) : 1;
  private lastFrame = 0;
  private slowFrames = 0;
  private restTimer = 0;
  private measurements: Measurement[] = [];
  private picked: Point[] = [];
  private pressed = new Vector2();
  private readonly observer: ResizeObserver;
  private readonly disposers: (() => void)[] = [];
  private size = new Vector2(1, 1);
  /** Called with a message after each measurement; empty while points are missing. */
  onMeasure: (tool: Tool, value: number | null) => void = () => undefined;
  formatLabel: (tool: Tool, value: number) => string = (_, value) => String(value);
  formatLength: (value: number) => string = String;
  formatBed: (number: number) => string = String;

  /** Throws an Error without WebGL 2. */
  constructor(
    private readonly canvas: HTMLCanvasElement,
    container: HTMLElement,
  ) {
    this.renderer = new WebGLRenderer({ canvas, antialias: !hasSlowWebGl(), alpha: true });
    this.renderer.localClippingEnabled = true;
    this.renderer.autoClear = false;
    this.renderer.setClearColor(0, 0);
    this.labels = document.createElement("div");
    this.labels.className = "labels";
    this.labels.ariaHidden = "true";
    container.append(this.labels);
    this.perspective.up.set(0, 0, 1);
    this.orthographic.up.set(0, 0, 1);
    this.perspective.position.set(...VIEWS.iso);
    this.scene.add(
      ...(hasSlowWebGl() ? [new HemisphereLight(0xffffff, 0x6f7a8c, 1.35), new AmbientLight(0xffffff, 0.25)] : []),
      this.lamp,
      this.lamp.target,
      this.extras,
      this.beds.root,
      this.ground.root,
      this.marker.root,
    );
    if (!hasSlowWebGl()) this.addEnvironment();
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.rotateSpeed = 0.9;
    this.controls.zoomToCursor = true;
    this.controls.addEventListener("change", () => this.invalidate());
    this.listen(canvas, "pointerdown", (event) => this.pressed.set(event.clientX, event.clientY));
    this.listen(canvas, "pointerup", (event) => this.click(event));
    this.listen(canvas, "dblclick", (event) => this.focus(event));
    this.listen(canvas, "keydown", (event) => this.press(event));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(container);
    this.resize();
  }

  /** Light the model softly from all sides, as in a bright room. */
  private addEnvironment(): void {
    const generator = new PMREMGenerator(this.renderer);
    this.scene.environment = generator.fromScene(new RoomEnvironment(), ROOM_BLUR_RAD).texture;
    this.scene.environmentIntensity = ROOM_INTENSITY;
    this.lamp.intensity = ROOM_LAMP_INTENSITY;
    generator.dispose();
  }

  private listen<Name extends keyof HTMLElementEventMap>(
    target: HTMLElement,
    name: Name,
    listener: (event: HTMLElementEventMap[Name]) => void,
  ): void {
    target.addEventListener(name, listener);
    this.disposers.push(() => target.removeEventListener(name, listener));
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.restTimer);
    this.observer.disconnect();
    for (const dispose of this.disposers) dispose();
    this.before?.root.removeFromParent();
    this.after?.root.removeFromParent();
    this.beds.clear();
    this.ground.dispose();
    this.marker.dispose();
    this.controls.dispose();
    this.scene.environment?.dispose();
    this.renderer.dispose();
    // A browser keeps the memory of a canvas that is gone until it collects garbage.
    this.renderer.forceContextLoss();
    this.labels.remove();
  }

  /**
   * Show a model, and its conversion if there is one. The camera stays if only the conversion or a heat map changes.
   * @param heatMaps Pictures that stand for those of the model and of its conversion.
   * @param beds Beds on which the objects of the conversion stand.
   */
  setPictures(model: Picture | null, output: Picture | null, heatMaps: (Picture | null)[], beds: Bed[]): void {
    const before = heatMaps[0] ?? model;
    const after = output && (heatMaps[1] ?? output);
    if (before === this.before && after === this.after) return;
    const isNew = model !== this.model;
    this.before?.root.removeFromParent();
    this.after?.root.removeFromParent();
    this.model = model;
    this.output = output;
    this.before = before;
    this.after = after;
    this.motionRatio = 1;
    for (const picture of [before, after]) if (picture) this.scene.add(picture.root);
    this.align(false);
    this.beds.place(output?.box ?? null, beds);
    this.align(this.options.mode !== "after");
    this.enclose();
    if (isNew) {
      this.measurements = [];
      this.picked = [];
      this.setView("iso", false);
    }
    this.setOptions(this.options);
  }

  /** Show a conversion at the place of the model, to compare both, or where it is itself. */
  private align(isAligned: boolean): void {
    for (const picture of [this.output, this.after]) picture?.setAligned(isAligned);
    this.beds.align(isAligned ? (this.output?.motion ?? null) : null);
  }

  /** Measure what the view shows. */
  private enclose(): void {
    const { mode } = this.options;
    this.box.makeEmpty();
    if (mode !== "after" && this.model) this.box.union(this.model.box);
    if ((mode !== "before" || !this.model) && this.output) this.box.union(this.output.box);
    (mode === "before" ? this.box.clone() : this.beds.around(this.box)).getBoundingSphere(this.sphere);
    this.placeGround();
  }

  private placeGround(): void {
    const picture = this.options.mode === "after" ? this.output : this.model;
    if (!picture) return;
    const color = getComputedStyle(this.canvas).getPropertyValue("--line").trim() || "#7a8699";
    this.ground.place(this.renderer, picture.root, picture.box, color);
  }

  /** Change between the place of the model and that of its conversion; the model keeps its place in the window. */
  private changePlace(isAligned: boolean): void {
    const motion = this.output?.motion;
    if (!motion) return;
    const change = isAligned ? motion.clone().invert() : motion;
    const offset = this.camera.position.clone().sub(this.controls.target);
    this.controls.target.applyMatrix4(change);
    this.camera.position.copy(this.controls.target).addScaledVector(offset, Math.cbrt(Math.abs(change.determinant())));
    this.flight = null;
    this.controls.update();
  }

  setOptions(options: ViewOptions): void {
    if (options.mode !== this.options.mode) this.changeMode(options.mode);
    if (options.isOrthographic !== this.options.isOrthographic) this.switchCamera(options.isOrthographic);
    if (options.tool !== this.options.tool) this.picked = [];
    this.options = options;
    this.planes.length = 0;
    if (options.section && !this.box.isEmpty()) this.planes.push(this.sectionPlane(options.section));
    const style = getComputedStyle(this.canvas);
    const display = {
      wireframe: options.wireframe,
      textures: options.textures,
      defects: options.defects,
      changes: options.changes,
      clay: style.getPropertyValue("--clay").trim() || "#b9c3d3",
      cut: style.getPropertyValue("--cut").trim() || "#e8a33d",
      edge: style.getPropertyValue("--edge").trim() || "#3a4657",
    };
    this.before?.apply(display, this.planes);
    this.after?.apply(display, this.planes);
    this.rebuildExtras();
    this.invalidate();
  }

  private changeMode(mode: Mode): void {
    const last = this.options.mode;
    this.options = { ...this.options, mode };
    if ((mode === "after") !== (last === "after")) {
      this.align(mode !== "after");
      this.changePlace(mode !== "after");
    }
    this.enclose();
    // Zoom out when the panes get half as wide.
    if ((mode === "side-by-side") !== (last === "side-by-side")) this.fit();
  }

  private sectionPlane({ axis, position, isFlipped }: Section): Plane {
    const at = this.box.min[axis] + (this.box.max[axis] - this.box.min[axis]) * position;
    const normal = new Vector3();
    normal[axis] = isFlipped ? 1 : -1;
    return new Plane(normal, isFlipped ? -at : at);
  }

  private switchCamera(isOrthographic: boolean): void {
    const next = isOrthographic ? this.orthographic : this.perspective;
    next.position.copy(this.camera.position);
    next.quaternion.copy(this.camera.quaternion);
    this.orthographic.zoom = 1;
    this.camera = next;
    this.controls.object = next;
    this.controls.update();
  }

  fit(isAnimated = true): void {
    this.fitFrom(this.camera.position.clone().sub(this.controls.target).normalize(), isAnimated);
  }

  /** Look from a direction, so that the outline of what is shown fills the view. */
  private fitFrom(direction: Vector3, isAnimated: boolean): void {
    const outline = this.listOutline();
    if (outline.length === 0) {
      this.fly(this.sphere.center, direction, this.sphere.radius, isAnimated);
      return;
    }
    const [width, height] = this.paneSize();
    const tangent = Math.tan((FIELD_OF_VIEW_DEG * Math.PI) / 360);
    const [above, below] = this.readInsets();
    const free = Math.max(0.3, 1 - (above + below) / height) / OUTLINE_RATIO;
    const right = new Vector3(0, 0, 1).cross(direction).normalize();
    const { target, distance } = fitOutline(outline, this.sphere.center.toArray(), {
      right: right.toArray(),
      up: direction.clone().cross(right).toArray(),
      back: direction.toArray(),
      tangents: [(tangent * width) / height / OUTLINE_RATIO, tangent * free],
      isOrthographic: this.options.isOrthographic,
    });
    const reach = Math.max(distance, 1e-3);
    // The middle of the view is not the middle of what the tools leave free.
    const shift = (tangent * reach * (above - below)) / height;
    const middle = new Vector3(...target).addScaledVector(direction.clone().cross(right), shift);
    this.flyTowards(middle, direction, reach, isAnimated);
  }

  /** Return the pixels at the top and at the bottom that the tools cover. */
  private readInsets(): [above: number, below: number] {
    const style = getComputedStyle(this.canvas);
    const read = (name: string): number => Number.parseFloat(style.getPropertyValue(name)) || 0;
    return [read("--inset-top"), read("--inset-bottom")];
  }

  /** Return points of the surface of what is shown, and the corners of its beds. */
  private listOutline(): number[] {
    const { mode } = this.options;
    const pictures = mode === "before" ? [this.model] : mode === "after" ? [this.output] : [this.model, this.output];
    const points = pictures.flatMap((picture) => picture?.listPoints(OUTLINE_POINTS) ?? []);
    if (mode !== "before") points.push(...this.beds.listCorners());
    return points;
  }

  setView(name: ViewName, isAnimated = true): void {
    const direction = new Vector3(...VIEWS[name]).normalize();
    // A camera exactly above its target has no defined turn about Z.
    if (Math.abs(direction.z) > 0.999) direction.y = -1e-4;
    this.fitFrom(direction, isAnimated);
  }

  /** Mark a place; null removes the mark. */
  mark(place: MarkedPlace | null): void {
    this.marked = place;
    if (place) this.marker.show(place.position_mm, place.color);
    else this.marker.hide();
    this.rebuildExtras();
    this.invalidate();
  }

  /** Look at one of the beds, from the present direction. */
  flyToBed(number: number): void {
    const sphere = this.beds.find(number)?.getBoundingSphere(new Sphere());
    if (!sphere) return;
    const direction = this.camera.position.clone().sub(this.controls.target).normalize();
    this.fly(sphere.center, direction, sphere.radius, true);
  }

  flyTo(place: { position_mm: Triple; size_mm?: number }): void {
    const direction = this.camera.position.clone().sub(this.controls.target).normalize();
    const position = new Vector3(...place.position_mm);
    const outward = position.clone().sub(this.sphere.center);
    // Look from the outside of the model, a little from above.
    if (outward.lengthSq() > (this.sphere.radius * 0.05) ** 2)
      direction
        .copy(outward.normalize())
        .setZ(direction.z + 0.35)
        .normalize();
    // The place fills a third of the view, or less if it is tiny.
    const radius = Math.max(1.5 * (place.size_mm ?? 0), this.sphere.radius * MIN_PLACE_RATIO);
    this.fly(position, this.chooseDirection(position, direction), radius, true);
  }

  /** Return the direction from which a point can be seen that is nearest to a preferred one; that one if there is none. */
  private chooseDirection(point: Vector3, preferred: Vector3): Vector3 {
    const picture = this.options.mode === "after" ? this.after : this.before;
    if (!picture) return preferred;
    const gap = this.sphere.radius * 2e-3;
    const isOpen = (direction: Vector3): boolean =>
      this.cast(new Raycaster(point.clone().addScaledVector(direction, gap), direction), picture).length === 0;
    // Along a surface, a point is hardly seen: the directions around must be open, too.
    const isClear = (direction: Vector3): boolean => {
      const side = new Vector3(-direction.y, direction.x, 1e-3).normalize();
      const across = direction.clone().cross(side).normalize();
      const turns = [side, side.clone().negate(), across, across.clone().negate()];
      return [direction, ...turns.map((turn) => turn.multiplyScalar(CLEAR_RATIO).add(direction).normalize())].every(
        isOpen,
      );
    };
    const all = [preferred, ...DIRECTIONS].sort((a, b) => b.dot(preferred) - a.dot(preferred));
    return all.find(isClear) ?? all.find(isOpen) ?? preferred;
  }

  private fly(center: Vector3, direction: Vector3, radius: number, isAnimated: boolean): void {
    const [width, height] = this.paneSize();
    const narrow = Math.min(1, width / height);
    const half = (FIELD_OF_VIEW_DEG * Math.PI) / 360;
    const distance = (Math.max(radius, 1e-3) * FIT_RATIO) / Math.sin(Math.atan(Math.tan(half) * narrow));
    this.flyTowards(center, direction, distance, isAnimated);
  }

  private flyTowards(center: Vector3, direction: Vector3, distance: number, isAnimated: boolean): void {
    const position = center.clone().addScaledVector(direction, distance);
    this.orthographic.zoom = 1;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!isAnimated || isCalm) {
      this.camera.position.copy(position);
      this.controls.target.copy(center);
      this.controls.update();
    } else {
      const from: [Vector3, Vector3] = [this.camera.position.clone(), this.controls.target.clone()];
      this.flight = { start: performance.now(), from, to: [position, center.clone()] };
    }
    this.invalidate();
  }

  private advanceFlight(): void {
    if (!this.flight) return;
    const { start, from, to } = this.flight;
    const share = Math.min(1, (performance.now() - start) / FLIGHT_MS);
    const eased = 1 - (1 - share) ** 3;
    const target = from[1].clone().lerp(to[1], eased);
    // Interpolate on the sphere about the target, so that the camera does not pass through the model.
    const a = new Spherical().setFromVector3(swapUp(from[0].clone().sub(from[1])));
    const b = new Spherical().setFromVector3(swapUp(to[0].clone().sub(to[1])));
    let turn = b.theta - a.theta;
    if (turn > Math.PI) turn -= 2 * Math.PI;
    if (turn < -Math.PI) turn += 2 * Math.PI;
    const radius = a.radius + (b.radius - a.radius) * eased;
    const between = new Spherical(radius, a.phi + (b.phi - a.phi) * eased, a.theta + turn * eased);
    this.camera.position.copy(target).add(unswapUp(new Vector3().setFromSpherical(between)));
    this.controls.target.copy(target);
    this.controls.update();
    if (share === 1) this.flight = null;
    else this.invalidate();
  }

  private paneSize(): [width: number, height: number] {
    const isHalf = this.options.mode === "side-by-side" && this.after !== null;
    return [this.size.x / (isHalf ? 2 : 1), this.size.y];
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas.parentElement ?? this.canvas;
    if (clientWidth === 0 || clientHeight === 0) return;
    this.size.set(clientWidth, clientHeight);
    this.applyPixelRatio(1);
    this.invalidate();
  }

  private applyPixelRatio(ratio: number): void {
    this.pixelRatio = ratio;
    this.renderer.setPixelRatio(Math.min(2, window.devicePixelRatio) * ratio);
    this.renderer.setSize(this.size.x, this.size.y, false);
  }

  invalidate(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame((time) => this.draw(time));
  }

  private draw(time: number): void {
    this.frame = 0;
    this.adaptPixels(time);
    this.advanceFlight();
    this.render();
    if (this.marker.isPulsing()) this.invalidate();
  }

  /** Draw fewer pixels while the model moves slowly, and all of them at rest. */
  private adaptPixels(time: number): void {
    const elapsed = time - this.lastFrame;
    this.lastFrame = time;
    this.slowFrames = elapsed > SLOW_FRAME_MS && elapsed < 1000 ? this.slowFrames + 1 : 0;
    if (this.slowFrames >= SLOW_FRAME_COUNT && this.motionRatio > MIN_PIXEL_RATIO) {
      this.motionRatio = Math.max(MIN_PIXEL_RATIO, this.motionRatio * 0.7);
      this.slowFrames = 0;
    }
    if (this.pixelRatio !== this.motionRatio) this.applyPixelRatio(this.motionRatio);
    clearTimeout(this.restTimer);
    if (this.pixelRatio < this.restRatio) {
      this.restTimer = window.setTimeout(() => {
        this.applyPixelRatio(this.restRatio);
        this.render();
      }, REST_MS);
    }
  }

  private panes(): Pane[] {
    const { x: width } = this.size;
    const { before, after } = this;
    const { mode, slider } = this.options;
    if (!before) return [];
    if (!after || mode === "before") return [{ picture: before, view: [0, width], clip: [0, width] }];
    if (mode === "after") return [{ picture: after, view: [0, width], clip: [0, width] }];
    const isSlider = mode === "slider";
    const edge = isSlider ? SLIDER_INSET_PIXELS + (width - 2 * SLIDER_INSET_PIXELS) * slider : width / 2;
    return [
      { picture: before, view: isSlider ? [0, width] : [0, edge], clip: [0, edge] },
      { picture: after, view: isSlider ? [0, width] : [edge, width - edge], clip: [edge, width - edge] },
    ];
  }

  private render(): void {
    const { y: height } = this.size;
    this.renderer.setScissorTest(false);
    this.renderer.clear();
    this.renderer.setScissorTest(true);
    for (const { picture, view, clip } of this.panes()) {
      for (const other of [this.before, this.after]) if (other) other.root.visible = other === picture;
      this.beds.root.visible = picture === this.after;
      this.frameCamera(view[1], height);
      this.placeLamp();
      this.lamp.target.position.copy(this.controls.target);
      this.marker.face(this.camera, height);
      const towards = this.camera.getWorldDirection(new Vector3()).negate();
      this.ground.face(towards, !this.options.bed && !(picture === this.after && this.beds.count > 0));
      this.renderer.setViewport(view[0], 0, view[1], height);
      this.renderer.setScissor(clip[0], 0, Math.max(0, clip[1]), height);
      this.renderer.render(this.scene, this.camera);
    }
    this.placeLabels();
  }

  /** Put the lamp above the right shoulder of the viewer, so that faces in different directions differ. */
  private placeLamp(): void {
    const distance = this.camera.position.distanceTo(this.controls.target);
    const offset = new Vector3(0.45, 0.55, 0).applyQuaternion(this.camera.quaternion);
    this.lamp.position.copy(this.camera.position).addScaledVector(offset, distance);
  }

  private frameCamera(width: number, height: number): void {
    const distance = this.camera.position.distanceTo(this.controls.target);
    const reach = this.camera.position.distanceTo(this.sphere.center) + this.sphere.radius * 4 + this.bedReach();
    this.perspective.aspect = width / height;
    this.perspective.near = Math.max(reach / 20_000, distance / 200);
    this.perspective.far = reach;
    const half = distance * Math.tan((FIELD_OF_VIEW_DEG * Math.PI) / 360);
    this.orthographic.left = (-half * width) / height;
    this.orthographic.right = (half * width) / height;
    this.orthographic.top = half;
    this.orthographic.bottom = -half;
    this.orthographic.near = -reach;
    this.orthographic.far = reach;
    this.camera.updateProjectionMatrix();
    this.camera.updateMatrixWorld();
  }

  private bedReach(): number {
    return this.options.bed ? Math.hypot(...this.options.bed) : 0;
  }

  /** Return a PNG of the view on the background of the page. */
  async takePicture(): Promise<Blob> {
    this.applyPixelRatio(1);
    this.render();
    const copy = document.createElement("canvas");
    copy.width = this.canvas.width;
    copy.height = this.canvas.height;
    const context = copy.getContext("2d");
    if (!context) throw new Error("the browser cannot draw pictures");
    context.fillStyle = getComputedStyle(this.canvas).getPropertyValue("--stage").trim();
    context.fillRect(0, 0, copy.width, copy.height);
    context.drawImage(this.canvas, 0, 0);
    return new Promise((resolve, reject) =>
      copy.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is empty"))), "image/png"),
    );
  }

  /** Return a small picture of the view as a data address. */
  takeThumbnail(): string {
    this.render();
    const copy = document.createElement("canvas");
    const ratio = Math.max(THUMBNAIL_PIXELS[0] / this.canvas.width, THUMBNAIL_PIXELS[1] / this.canvas.height);
    [copy.width, copy.height] = THUMBNAIL_PIXELS;
    const [width, height] = [this.canvas.width * ratio, this.canvas.height * ratio];
    const context = copy.getContext("2d");
    context?.drawImage(this.canvas, (copy.width - width) / 2, (copy.height - height) / 2, width, height);
    return copy.toDataURL("image/webp", 0.8);
  }

  private rebuildExtras(): void {
    for (const child of [...this.extras.children] as Line<BufferGeometry, Material>[]) {
      this.extras.remove(child);
      child.geometry.dispose();
      child.material.dispose();
    }
    this.labels.replaceChildren();
    if (this.box.isEmpty()) return;
    const color = getComputedStyle(this.canvas).getPropertyValue("--line").trim() || "#7a8699";
    const accent = getComputedStyle(this.canvas).getPropertyValue("--accent").trim() || "#2f6fed";
    this.beds.draw(color, this.formatBed);
    if (this.options.bed) this.addBed(this.options.bed, color);
    if (this.options.box) this.addBox(accent);
    for (const measurement of this.measurements) this.addMeasurement(measurement, accent);
    if (this.marked?.label) this.addLabel(this.marked.label, this.marked.position_mm, "place");
    if (this.picked.length > 0) this.addPoints(this.picked, accent);
  }

  private shownBox(): Box3 {
    return (this.options.mode === "after" ? this.after?.box : this.before?.box) ?? this.box;
  }

  private addBed([width, depth, height]: readonly [number, number, number], color: string): void {
    const box = this.shownBox();
    const center = box.getCenter(new Vector3());
    const [left, front, z] = [center.x - width / 2, center.y - depth / 2, box.min.z];
    const minor: number[] = [];
    const major: number[] = [];
    for (let x = 0; x <= width + 1e-6; x += 10)
      (x % 50 === 0 ? major : minor).push(left + x, front, z, left + x, front + depth, z);
    for (let y = 0; y <= depth + 1e-6; y += 10)
      (y % 50 === 0 ? major : minor).push(left, front + y, z, left + width, front + y, z);
    for (const level of [z, z + height]) major.push(...rectangle(left, front, width, depth, level));
    for (const [x, y] of [
      [0, 0],
      [width, 0],
      [width, depth],
      [0, depth],
    ] as const) {
      major.push(left + x, front + y, z, left + x, front + y, z + height);
    }
    this.addLines(minor, color, 0.22);
    this.addLines(major, color, 0.5);
  }

  private addBox(color: string): void {
    const { min, max } = this.shownBox();
    const [width, depth] = [max.x - min.x, max.y - min.y];
    const lines = [...rectangle(min.x, min.y, width, depth, min.z), ...rectangle(min.x, min.y, width, depth, max.z)];
    for (const x of [min.x, max.x]) for (const y of [min.y, max.y]) lines.push(x, y, min.z, x, y, max.z);
    this.addLines(lines, color, 0.8);
    const middle = min.clone().add(max).multiplyScalar(0.5);
    this.addLabel(this.formatLength(width), [middle.x, min.y, min.z], "x");
    this.addLabel(this.formatLength(depth), [max.x, middle.y, min.z], "y");
    this.addLabel(this.formatLength(max.z - min.z), [max.x, min.y, middle.z], "z");
  }

  private addMeasurement({ tool, points, value }: Measurement, color: string): void {
    this.addPoints(points, color);
    const path = tool === "radius" ? [...points, points[0] ?? [0, 0, 0]] : points;
    const geometry = new BufferGeometry().setAttribute("position", new Float32BufferAttribute(path.flat(), 3));
    const line = new Line(geometry, new LineBasicMaterial({ color, depthTest: false, transparent: true }));
    line.renderOrder = 2;
    this.extras.add(line);
    const anchor = tool === "angle" ? [points[1] ?? [0, 0, 0]] : points;
    const center = AXES.map((_, axis) => anchor.reduce((sum, point) => sum + (point[axis] ?? 0), 0) / anchor.length);
    this.addLabel(this.formatLabel(tool, value), center as unknown as Point, "measure");
  }

  private addPoints(points: Point[], color: string): void {
    const geometry = new BufferGeometry().setAttribute("position", new Float32BufferAttribute(points.flat(), 3));
    const material = new PointsMaterial({
      color,
      size: 9,
      sizeAttenuation: false,
      depthTest: false,
      transparent: true,
    });
    const object = new Points(geometry, material);
    object.renderOrder = 3;
    this.extras.add(object);
  }

  private addLines(positions: number[], color: string, opacity: number): void {
    const geometry = new BufferGeometry().setAttribute("position", new Float32BufferAttribute(positions, 3));
    this.extras.add(
      new LineSegments(geometry, new LineBasicMaterial({ color, transparent: true, opacity, depthWrite: false })),
    );
  }

  private addLabel(text: string, at: Point, kind: string): void {
    const label = document.createElement("span");
    label.className = `label label-${kind}`;
    label.textContent = text;
    label.dataset["at"] = at.join(" ");
    this.labels.append(label);
  }

  private placeLabels(): void {
    const [width, height] = this.paneSize();
    const point = new Vector3();
    for (const label of this.labels.children as HTMLCollectionOf<HTMLElement>) {
      const [x = 0, y = 0, z = 0] = (label.dataset["at"] ?? "").split(" ").map(Number);
      point.set(x, y, z).project(this.camera);
      label.hidden = point.z > 1;
      label.style.transform = `translate(-50%, -50%) translate(${((point.x + 1) / 2) * width}px, ${((1 - point.y) / 2) * height}px)`;
    }
  }

  private paneAt(clientX: number): Pane | undefined {
    const x = clientX - this.canvas.getBoundingClientRect().left;
    return this.panes().find(({ clip }) => x >= clip[0] && x <= clip[0] + clip[1]);
  }

  private pick(clientX: number, clientY: number): { hit: Intersection<Mesh>; picture: Picture; ray: Raycaster } | null {
    const pane = this.paneAt(clientX);
    if (!pane) return null;
    const bounds = this.canvas.getBoundingClientRect();
    const x = ((clientX - bounds.left - pane.view[0]) / pane.view[1]) * 2 - 1;
    const y = 1 - ((clientY - bounds.top) / bounds.height) * 2;
    this.frameCamera(pane.view[1], this.size.y);
    const ray = new Raycaster();
    ray.setFromCamera(new Vector2(x, y), this.camera);
    const hit = this.cast(ray, pane.picture).find(({ point }) =>
      this.planes.every((plane) => plane.distanceToPoint(point) >= 0),
    );
    return hit ? { hit, picture: pane.picture, ray } : null;
  }

  private cast(ray: Raycaster, picture: Picture): Intersection<Mesh>[] {
    picture.root.updateMatrixWorld(true);
    const hits: Intersection<Mesh>[] = [];
    for (const mesh of picture.meshes) {
      if (!isShown(mesh)) continue;
      mesh.geometry.boundsTree ??= new MeshBVH(mesh.geometry);
      acceleratedRaycast.call(mesh, ray, hits);
    }
    return hits.sort((a, b) => a.distance - b.distance);
  }

  private click(event: PointerEvent): void {
    const isDrag = this.pressed.distanceTo(new Vector2(event.clientX, event.clientY)) > CLICK_PIXELS;
    if (!isDrag && event.button === 0 && this.options.tool) this.pickPoint(event.clientX, event.clientY);
  }

  private pickPoint(clientX: number, clientY: number): void {
    const { tool } = this.options;
    const found = this.pick(clientX, clientY);
    if (!tool || !found) return;
    if (tool === "thickness") this.measureWall(found.hit, found.picture);
    else {
      this.picked.push(this.snap(found.hit, clientX, clientY));
      if (this.picked.length === POINT_COUNTS[tool]) {
        this.addResult(tool, this.picked, found.picture);
        this.picked = [];
      }
    }
    this.rebuildExtras();
    this.invalidate();
  }

  /** Take the nearest corner of the triangle if it is within a few pixels of the pointer. */
  private snap({ face, object, point }: Intersection<Mesh>, clientX: number, clientY: number): Point {
    const pane = this.paneAt(clientX);
    const positions = object.geometry.getAttribute("position");
    const bounds = this.canvas.getBoundingClientRect();
    if (!face || !pane) return point.toArray();
    for (const index of [face.a, face.b, face.c]) {
      const corner = new Vector3().fromBufferAttribute(positions, index).applyMatrix4(object.matrixWorld);
      const screen = corner.clone().project(this.camera);
      const x = bounds.left + pane.view[0] + ((screen.x + 1) / 2) * pane.view[1];
      const y = bounds.top + ((1 - screen.y) / 2) * bounds.height;
      if (Math.hypot(x - clientX, y - clientY) < SNAP_PIXELS) return corner.toArray();
    }
    return point.toArray();
  }

  /** Measure from the hit through the wall to the opposite side. */
  private measureWall({ point, face, object }: Intersection<Mesh>, picture: Picture): void {
    if (!face) return;
    const inward = face.normal.clone().transformDirection(object.matrixWorld);
    // A face that is seen from behind is flipped; the wall lies behind what the user sees.
    const fromCamera = point.clone().sub(this.camera.position);
    if (inward.dot(fromCamera) < 0) inward.negate();
    const gap = this.sphere.radius * 1e-5;
    const hit = this.cast(new Raycaster(point.clone().addScaledVector(inward, gap), inward), picture)[0];
    if (!hit) {
      this.onMeasure("thickness", null);
      return;
    }
    const points: Point[] = [point.toArray(), hit.point.toArray()];
    this.addResult("thickness", points, picture);
  }

  private addResult(tool: Tool, points: Point[], picture: Picture): void {
    const value = measure(tool, points) * (tool === "angle" ? 1 : picture.scale);
    this.measurements.push({ tool, points, value });
    this.onMeasure(tool, value);
  }

  clearMeasurements(): void {
    this.measurements = [];
    this.picked = [];
    this.rebuildExtras();
    this.invalidate();
  }

  private focus(event: MouseEvent): void {
    const found = this.options.tool ? null : this.pick(event.clientX, event.clientY);
    if (!found) return;
    const offset = this.camera.position.clone().sub(this.controls.target);
    this.flight = {
      start: performance.now(),
      from: [this.camera.position.clone(), this.controls.target.clone()],
      to: [found.hit.point.clone().addScaledVector(offset, 0.6), found.hit.point.clone()],
    };
    this.invalidate();
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const names = Object.keys(VIEWS) as ViewName[];
    const view = names[Number(event.key) - 1];
    const turns: Partial<Record<string, [number, number]>> = {
      ArrowLeft: [-KEY_TURN_RAD, 0],
      ArrowRight: [KEY_TURN_RAD, 0],
      ArrowUp: [0, -KEY_TURN_RAD],
      ArrowDown: [0, KEY_TURN_RAD],
    };
    const turn = turns[event.key];
    if (turn) this.orbit(...turn);
    else if (event.key === "+" || event.key === "=") this.zoom(1 / KEY_ZOOM_RATIO);
    else if (event.key === "-") this.zoom(KEY_ZOOM_RATIO);
    else if (event.key.toLowerCase() === "f") this.fit();
    else if (view) this.setView(view);
    else if (event.key === "Enter" && this.options.tool) this.pickMiddle();
    else return;
    event.preventDefault();
  }

  private pickMiddle(): void {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    this.pickPoint(left + width / (this.panes().length > 1 ? 4 : 2), top + height / 2);
  }

  private orbit(turn: number, tilt: number): void {
    const offset = new Spherical().setFromVector3(swapUp(this.camera.position.clone().sub(this.controls.target)));
    offset.theta += turn;
    offset.phi = Math.min(Math.PI - 1e-3, Math.max(1e-3, offset.phi + tilt));
    this.camera.position.copy(this.controls.target).add(unswapUp(new Vector3().setFromSpherical(offset)));
    this.controls.update();
    this.invalidate();
  }

  private zoom(ratio: number): void {
    const offset = this.camera.position.clone().sub(this.controls.target).multiplyScalar(ratio);
    this.camera.position.copy(this.controls.target).add(offset);
    this.controls.update();
    this.invalidate();
  }
}

/** Return whether the list of parts shows a mesh. The root of a picture is hidden while the other pane is drawn. */
function isShown(mesh: Mesh): boolean {
  for (let object: Object3D | null = mesh; object && !(object.parent instanceof Scene); object = object.parent) {
    if (!object.visible) return false;
  }
  return true;
}

/** three.js measures spherical coordinates about Y; the page has Z up. */
function swapUp({ x, y, z }: Vector3): Vector3 {
  return new Vector3(y, z, x);
}

function unswapUp({ x, y, z }: Vector3): Vector3 {
  return new Vector3(z, x, y);
}

function rectangle(left: number, front: number, width: number, depth: number, z: number): number[] {
  const [right, back] = [left + width, front + depth];
  return [
    ...[left, front, z, right, front, z],
    ...[right, front, z, right, back, z],
    ...[right, back, z, left, back, z],
    ...[left, back, z, left, front, z],
  ];
}
