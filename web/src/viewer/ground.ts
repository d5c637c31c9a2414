/** The ground on which a model stands: a grid that fades out, and the soft shadow of the model on it. */

import {
  CanvasTexture,
  Group,
  Mesh,
  MeshBasicMaterial,
  OrthographicCamera,
  PlaneGeometry,
  Scene,
  ShaderMaterial,
  Vector2,
  Vector3,
  WebGLRenderTarget,
  type Box3,
  type Object3D,
  type WebGLRenderer,
} from "three";

const SHADOW_PIXELS = 256;
/** Width of the shadow per longest side of the model; it fades out beyond it. */
const SHADOW_RATIO = 1.6;
const SHADOW_OPACITY = 0.55;
/** Height above the ground, per longest side, at which a surface has no shadow any more. */
const HEIGHT_RATIO = 0.5;
const BLUR_PIXELS = [2.5, 6];
/** Width of the grid per longest side of the model. */
const GRID_RATIO = 3.2;
const GRID_PIXELS = 1024;
/** How far the ground lies below the model, per longest side; two surfaces at one height would flicker. */
const GAP_RATIO = 1e-3;
/** Cosines between the view and Z at which the ground is seen edge-on, and straight from above. */
const MIN_COSINE = 0.02;
const MAX_COSINE = 0.96;

const SHADOW_VERTEX =
  "varying float z; void main() { vec4 p = modelMatrix * vec4(position, 1.0); z = p.z; gl_Position = projectionMatrix * viewMatrix * p; }";
const SHADOW_FRAGMENT =
  "uniform float floorZ; uniform float limit; varying float z; void main() { gl_FragColor = vec4(0.0, 0.0, 0.0, clamp(1.0 - (z - floorZ) / limit, 0.0, 1.0)); }";
const BLUR_VERTEX = "varying vec2 at; void main() { at = uv; gl_Position = vec4(position.xy, 0.0, 1.0); }";
const BLUR_FRAGMENT = `uniform sampler2D map; uniform vec2 step; varying vec2 at;
void main() {
  float sum = 0.0;
  float total = 0.0;
  for (int i = -6; i <= 6; i++) {
    float weight = exp(-float(i * i) / 18.0);
    sum += weight * texture2D(map, at + float(i) * step).a;
    total += weight;
  }
  gl_FragColor = vec4(0.0, 0.0, 0.0, sum / total);
}`;

export class Ground {
  readonly root = new Group();
  private readonly targets = [0, 1].map(
    () => new WebGLRenderTarget(SHADOW_PIXELS, SHADOW_PIXELS, { depthBuffer: true }),
  );
  private readonly shadow = new Mesh(new PlaneGeometry(1, 1), toMaterial());
  private readonly grid = new Mesh(new PlaneGeometry(1, 1), toMaterial());
  private readonly depth = new ShaderMaterial({
    vertexShader: SHADOW_VERTEX,
    fragmentShader: SHADOW_FRAGMENT,
    uniforms: { floorZ: { value: 0 }, limit: { value: 1 } },
    side: 2,
  });
  private readonly blur = new ShaderMaterial({
    vertexShader: BLUR_VERTEX,
    fragmentShader: BLUR_FRAGMENT,
    uniforms: { map: { value: null }, step: { value: new Vector2() } },
    depthTest: false,
    depthWrite: false,
  });
  private readonly screen = new Scene();
  private readonly camera = new OrthographicCamera();
  private floor = 0;
  private color = "";

  constructor() {
    this.root.visible = false;
    this.shadow.material.opacity = SHADOW_OPACITY;
    this.shadow.renderOrder = -1;
    this.grid.renderOrder = -2;
    this.root.add(this.grid, this.shadow);
    this.screen.add(new Mesh(new PlaneGeometry(2, 2), this.blur));
  }

  /**
   * Put the ground below a model, and draw its shadow.
   * @param extent Box by which the grid is measured; it is that of the model, or of another one at the same place.
   */
  place(renderer: WebGLRenderer, model: Object3D, box: Box3, extent: Box3, color: string): void {
    this.root.visible = !box.isEmpty();
    if (box.isEmpty()) return;
    const size = box.getSize(new Vector3());
    const center = box.getCenter(new Vector3());
    const longest = Math.max(size.x, size.y, size.z);
    this.floor = box.min.z - GAP_RATIO * longest;
    const width = SHADOW_RATIO * Math.max(size.x, size.y, 0.3 * longest);
    this.shadow.scale.setScalar(width);
    this.shadow.position.set(center.x, center.y, this.floor);
    const middle = extent.getCenter(new Vector3());
    const side = Math.max(...extent.getSize(new Vector3()).toArray());
    this.grid.scale.setScalar(GRID_RATIO * side);
    // Lines at round coordinates, whatever the place of the model is.
    this.grid.position.set(middle.x, middle.y, this.floor - GAP_RATIO * longest);
    this.drawGrid(GRID_RATIO * side, color);
    this.drawShadow(renderer, model, center, width, longest);
  }

  private drawShadow(renderer: WebGLRenderer, model: Object3D, center: Vector3, width: number, longest: number): void {
    const [first, second] = this.targets;
    if (!first || !second) return;
    Object.assign(this.camera, { left: -width / 2, right: width / 2, top: width / 2, bottom: -width / 2 });
    this.camera.near = 0;
    this.camera.far = 4 * longest;
    // From below, so that the lowest surface of each place is seen.
    this.camera.position.set(center.x, center.y, this.floor - longest);
    this.camera.up.set(0, 1, 0);
    this.camera.lookAt(center.x, center.y, this.floor);
    this.camera.updateProjectionMatrix();
    this.camera.updateMatrixWorld();
    this.depth.uniforms["floorZ"] = { value: this.floor };
    this.depth.uniforms["limit"] = { value: HEIGHT_RATIO * longest };
    const scene = new Scene();
    scene.overrideMaterial = this.depth;
    const { parent, visible } = model;
    scene.add(model);
    model.visible = true;
    renderer.setScissorTest(false);
    renderer.setRenderTarget(first);
    renderer.clear();
    renderer.render(scene, this.camera);
    for (const pixels of BLUR_PIXELS) {
      const step = pixels / 6 / SHADOW_PIXELS;
      this.pass(renderer, first, second, step, 0);
      this.pass(renderer, second, first, 0, step);
    }
    renderer.setRenderTarget(null);
    scene.remove(model);
    parent?.add(model);
    model.visible = visible;
    this.shadow.material.map = first.texture;
    // The camera looks up, so that its picture is mirrored along X.
    this.shadow.scale.x = -width;
    this.shadow.material.needsUpdate = true;
  }

  private pass(renderer: WebGLRenderer, from: WebGLRenderTarget, to: WebGLRenderTarget, x: number, y: number): void {
    this.blur.uniforms["map"] = { value: from.texture };
    this.blur.uniforms["step"] = { value: new Vector2(x, y) };
    renderer.setRenderTarget(to);
    renderer.clear();
    renderer.render(this.screen, this.camera);
  }

  private drawGrid(width: number, color: string): void {
    const step = 10 ** Math.ceil(Math.log10(width / 40));
    const key = `${color} ${(width / step).toPrecision(6)}`;
    if (key === this.color) return;
    this.color = key;
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = GRID_PIXELS;
    const context = canvas.getContext("2d");
    if (!context) return;
    const middle = GRID_PIXELS / 2;
    const pixels = (step / width) * GRID_PIXELS;
    context.strokeStyle = color;
    for (let line = 0; line * pixels < middle; line++) {
      context.lineWidth = line % 5 === 0 ? 2 : 1;
      context.globalAlpha = line % 5 === 0 ? 0.55 : 0.28;
      context.beginPath();
      for (const at of line === 0 ? [middle] : [middle - line * pixels, middle + line * pixels]) {
        context.moveTo(at, 0);
        context.lineTo(at, GRID_PIXELS);
        context.moveTo(0, at);
        context.lineTo(GRID_PIXELS, at);
      }
      context.stroke();
    }
    const fade = context.createRadialGradient(middle, middle, 0.2 * middle, middle, middle, middle);
    fade.addColorStop(0, "#000");
    fade.addColorStop(1, "#0000");
    context.globalAlpha = 1;
    context.globalCompositeOperation = "destination-in";
    context.fillStyle = fade;
    context.fillRect(0, 0, GRID_PIXELS, GRID_PIXELS);
    this.grid.material.map?.dispose();
    const texture = new CanvasTexture(canvas);
    texture.anisotropy = 8;
    this.grid.material.map = texture;
    this.grid.material.needsUpdate = true;
  }

  /** Show the ground only when seen at an angle from above: from below it would hide the model. */
  face(towards: Vector3, hasGrid: boolean): void {
    const isSeen = towards.z > MIN_COSINE && towards.z < MAX_COSINE;
    this.shadow.visible = isSeen;
    this.grid.visible = isSeen && hasGrid;
  }

  dispose(): void {
    for (const target of this.targets) target.dispose();
    for (const { geometry, material } of [this.shadow, this.grid]) {
      geometry.dispose();
      material.map?.dispose();
      material.dispose();
    }
    this.depth.dispose();
    this.blur.dispose();
    this.root.removeFromParent();
  }
}

function toMaterial(): MeshBasicMaterial {
  return new MeshBasicMaterial({ transparent: true, depthWrite: false, side: 2, toneMapped: false });
}
