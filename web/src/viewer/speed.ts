/** Speed of 3D in this browser. */

/** Names of renderers that run on the processor: of Chromium, Mesa and Windows. */
const SOFTWARE_RENDERERS = /swiftshader|llvmpipe|softpipe|software|basic render/i;

let isSlow: boolean | undefined;

/** Return whether WebGL runs on the CPU: the machine lacks a graphics card, or the browser blocks its driver. */
export function hasSlowWebGl(): boolean {
  isSlow ??= SOFTWARE_RENDERERS.test(nameRenderer());
  return isSlow;
}

function nameRenderer(): string {
  const context = document.createElement("canvas").getContext("webgl2");
  const extension = context?.getExtension("WEBGL_debug_renderer_info");
  if (!context || !extension) return "";
  const name = String(context.getParameter(extension.UNMASKED_RENDERER_WEBGL));
  // Browsers allow a limited number of contexts.
  context.getExtension("WEBGL_lose_context")?.loseContext();
  return name;
}
