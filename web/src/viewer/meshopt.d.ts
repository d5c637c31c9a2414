/** Types of the part of meshoptimizer that three.js includes, as far as the page uses it. */

declare module "three/examples/jsm/libs/meshopt_simplifier.module.js" {
  export const MeshoptSimplifier: {
    ready: Promise<void>;
    /**
     * Return the corners that remain, and the error.
     * @param indices Three vertices for each triangle.
     * @param positions Three numbers for each vertex.
     * @param stride Numbers for each vertex.
     * @param targetCount Corners to keep.
     * @param targetError Most error, relative to the size of the mesh.
     */
    simplify(
      indices: Uint32Array,
      positions: Float32Array,
      stride: number,
      targetCount: number,
      targetError: number,
      flags?: "Permissive"[],
    ): [corners: Uint32Array<ArrayBuffer>, error: number];
  };
}
