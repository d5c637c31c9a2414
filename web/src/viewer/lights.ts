/** Light of the view: a room around the model, and a lamp that follows the viewer. */

import {
  AmbientLight,
  DirectionalLight,
  HemisphereLight,
  PMREMGenerator,
  Vector3,
  type Camera,
  type Scene,
  type WebGLRenderer,
} from "three";
import { RoomEnvironment } from "three/examples/jsm/environments/RoomEnvironment.js";

import { hasSlowWebGl } from "./speed";

/** Blur of the room in which a model is lit, in radians; filaments are not mirrors. */
const ROOM_BLUR_RAD = 0.04;
const ROOM_INTENSITY = 0.5;
const ROOM_LAMP_INTENSITY = 1.5;
/** Intensity of the lamp without a room, for software WebGL. */
const LAMP_INTENSITY = 2.1;

export class Lights {
  private readonly lamp = new DirectionalLight(0xffffff, LAMP_INTENSITY);

  constructor(
    renderer: WebGLRenderer,
    private readonly scene: Scene,
  ) {
    scene.add(this.lamp, this.lamp.target);
    if (hasSlowWebGl()) scene.add(new HemisphereLight(0xffffff, 0x6f7a8c, 1.35), new AmbientLight(0xffffff, 0.25));
    else this.addRoom(renderer);
  }

  /** Light the model softly from all sides, as in a bright room. */
  private addRoom(renderer: WebGLRenderer): void {
    const generator = new PMREMGenerator(renderer);
    this.scene.environment = generator.fromScene(new RoomEnvironment(), ROOM_BLUR_RAD).texture;
    this.scene.environmentIntensity = ROOM_INTENSITY;
    this.lamp.intensity = ROOM_LAMP_INTENSITY;
    generator.dispose();
  }

  /** Put the lamp above the right shoulder of the viewer, so that faces in different directions differ. */
  follow(camera: Camera, target: Vector3): void {
    const offset = new Vector3(0.45, 0.55, 0).applyQuaternion(camera.quaternion);
    this.lamp.position.copy(camera.position).addScaledVector(offset, camera.position.distanceTo(target));
    this.lamp.target.position.copy(target);
  }

  dispose(): void {
    this.scene.environment?.dispose();
  }
}
