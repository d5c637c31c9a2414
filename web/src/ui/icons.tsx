/** Icons, drawn with strokes on a grid of 24. */

const PATHS = {
  cube: "M12 3 4 7.500v9L12 21l8-4.500v-9zM4 7.500l8 4.500 8-4.500M12 12v9",
  upload: "M12 16V4m0 0L7 9m5-5 5 5M4 16v3a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-3",
  download: "M12 4v12m0 0 5-5m-5 5-5-5M4 19h16",
  close: "m6 6 12 12M18 6 6 18",
  plus: "M12 5v14M5 12h14",
  check: "m5 12.500 4.500 4.500L19 7.500",
  warning: "M12 4 2.500 20h19zM12 10v4.500m0 2.500v.1",
  error: "M8 3h8l5 5v8l-5 5H8l-5-5V8zM12 7.500v5.500m0 3v.1",
  info: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zm0-10v5.500m0-9.100v.1",
  fit: "M4 9V4h5m6 0h5v5m0 6v5h-5m-6 0H4v-5",
  eye: "M2 12s3.500-6.500 10-6.500S22 12 22 12s-3.500 6.500-10 6.500S2 12 2 12zm10 2.800a2.800 2.800 0 1 0 0-5.600 2.800 2.800 0 0 0 0 5.600z",
  section: "M4 20 20 4M4 12V4h8m8 8v8h-8",
  ruler: "m3 16 13-13 5 5L8 21zM7 12l2 2m1-5 3 3m0-6 2 2",
  bed: "M3 15 12 19l9-4-9-4zm0 0v-3m18 3v-3M8 10V5h8v5",
  box: "M4 8v12h12V8zM4 8l4-4h12v12l-4 4M16 8l4-4",
  tree: "M5 4v14h6M5 11h6m3-9h6v5h-6zm0 7h6v5h-6zm0 7h6v5h-6z",
  camera: "M4 8h3.500L9 5.500h6L16.500 8H20v11H4zm8 8.500a3.200 3.200 0 1 0 0-6.500 3.200 3.200 0 0 0 0 6.500z",
  wrench:
    "M14.500 6.500a4 4 0 0 1 5-3.500l-2.500 2.700 1.300 1.300L21 4.500a4 4 0 0 1-5.300 5L8 17.200a2 2 0 0 1-2.900-2.900l7.700-7.700",
  swap: "M4 8h14m0 0-3.500-3.500M18 8l-3.500 3.500M20 16H6m0 0 3.500-3.500M6 16l3.500 3.500",
  palette:
    "M12 3a9 9 0 1 0 0 18c1.500 0 2-1 1.500-2.200-.700-1.600.3-2.800 2-2.800H18a3 3 0 0 0 3-3c0-5.500-4-10-9-10zM7.500 12v.1M9.500 8v.1m5-.6v.1m3 3.400v.1",
  undo: "M8 5 4 9l4 4M4 9h10a5.500 5.500 0 0 1 0 11h-3",
  redo: "m16 5 4 4-4 4M20 9H10a5.500 5.500 0 0 0 0 11h3",
  history: "M4 12a8 8 0 1 0 2.500-5.800M4 4v4.500h4.500M12 7.500V12l3 2",
  key: "M7.500 20.500a4 4 0 1 0 0-8 4 4 0 0 0 0 8zm2.900-6.900L20 4m-3.200 3.200 2.700 2.700m-6 .600 2 2",
  sliders: "M4 7h9m4 0h3M4 17h3m4 0h9M15 4.500v5M9 14.500v5",
  left: "m14 6-6 6 6 6",
  right: "m10 6 6 6-6 6",
  lock: "M6 11h12v9H6zm2.500 0V8a3.500 3.500 0 0 1 7 0v3",
  link: "M10 14a4 4 0 0 0 6 .400l3-3a4 4 0 0 0-5.700-5.700l-1 1M14 10a4 4 0 0 0-6-.400l-3 3a4 4 0 0 0 5.700 5.700l1-1",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
