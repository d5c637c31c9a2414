/** Bodies of the HTTP interface, as far as the page reads them. */

export interface Field {
  type: "boolean" | "integer" | "number" | "string";
  title?: string;
  description?: string;
  enum?: string[];
  /** Titles of the choices. */
  oneOf?: { const: string; title: string }[];
  minimum?: number;
  maximum?: number;
  default?: boolean | number | string;
  examples?: (number | string)[];
  /** Whether most people set the option. */
  "x-everyday"?: boolean;
}

export interface FieldGroup {
  properties: Record<string, Field>;
}

export interface Capability {
  label: string;
  requires: string | null;
  allowed: boolean;
  objection: string | null;
  remedy: string | null;
  options: FieldGroup;
}

export interface Format extends Capability {
  extensions: string[];
  /** Title under which the page offers the format beside the operations; null: only in the list. */
  action?: string | null;
  read: boolean;
  write: boolean;
  /** Which sides of the format keep a feature, and the options of its writer that do. */
  features: Record<string, { read: boolean; write: boolean; options: string[] }>;
}

/** Position of an operation in a chain. */
export type Stage =
  "repair" | "reduce" | "turn" | "resize" | "shape" | "hollow" | "cut" | "base" | "divide" | "color" | "place";

export interface Operation extends Capability {
  id: string;
  stage: Stage;
  available: boolean;
  /** Features that the operation does not keep. */
  drops: string[];
  /** Dropped features that live on in others, such as textures as colors. */
  transfers: string[];
}

/** Check of a model before it is printed. */
export interface Check {
  id: string;
  label: string;
  /** Options; checks share some. */
  options: FieldGroup;
}

export interface Supported {
  plan: string;
  input_formats: string[];
  output_formats: string[];
  formats: Record<string, Format>;
  operations: Operation[];
  /** Absent on a server without `/check`. */
  checks?: Check[];
  options: FieldGroup;
  recipes: Record<string, Recipe>;
  /** Absent on an older server. */
  printers?: Printer[];
  /** Extensions of files that the caller may send to printers; absent on an older server. */
  sends?: string[];
  /** Null for a service without a rate card; absent on a server without `/quote`. */
  rates?: Rates | null;
}

/** Printer on the network, to which the service sends files. */
export interface NetworkPrinter {
  address: string;
  name: string;
  /** "" if it is not known. */
  state: string;
  /** Why the state is not known. */
  error: string;
}

export interface Printer {
  id: string;
  name: string;
  /** Other names, in lower case with dashes; absent on an older server. */
  aliases?: string[];
  /** Width, depth and height in which it prints. */
  volume_mm: Triple;
}

/** Named list of options. */
export interface Recipe {
  label: string;
  description: string;
  options: Record<string, string | number | boolean>;
}

export interface Plan {
  plan: string;
  label: string;
  limits: {
    /** Null: no limit. */
    max_file_bytes: number | null;
    max_batch_files: number | null;
    requests_per_minute: number | null;
    /** Jobs that a caller may have at once; null: any number. */
    max_unfinished_jobs: number | null;
    /** Seconds for which the result of a job is kept; null: until the caller deletes it. */
    job_retention_seconds: number | null;
  };
  /** Options for which the operator keeps a list of the caller. */
  inventories: string[];
  usage: { requests_remaining: number; resets_in_seconds: number };
}

export type Triple = [number, number, number];

export type DefectKind = "open_edges" | "nonmanifold_edges" | "flipped_faces" | "stray_fragments";

export interface Place {
  position_mm: Triple;
  size_mm: number;
  count: number;
  part: number;
}

export interface Finding {
  kind: DefectKind;
  count: number;
  places_found: number;
  places: Place[];
}

export type Severity = "error" | "warning" | "info";

export interface IssuePlace {
  position_mm: Triple;
  size_mm?: number;
  amount?: number;
}

/** Finding of a check. */
export interface Issue {
  code: string;
  severity: Severity;
  message: string;
  check: string;
  /** The worst value. */
  amount?: number;
  limit?: number;
  /** Unit of the amounts and of the limit; absent for a count. */
  unit?: string;
  places?: IssuePlace[];
  places_found?: number;
  /** Options of a conversion that fixes it. */
  remedy?: Record<string, string | number | boolean>;
  /** Options of a picture that shows it. */
  picture?: { color_by?: string; color_limit?: number };
}

export interface Verdict {
  verdict: "ready" | "check_this" | "incomplete" | "will_not_print";
  /** The worst first. */
  findings: Issue[];
  /** Null if no check made one. */
  estimate: Estimate | null;
  notes: Note[];
}

/** Estimate of a print, as far as the page shows it. */
export interface Estimate {
  material: string;
  weight_g: number;
  support_weight_g: number;
  /** Null if the time depends on what else is in the printer. */
  seconds: number | null;
  /** Share of the time by which nine of ten parts differ at most. */
  seconds_error: number | null;
}

/** Price of a number of pieces. Amounts are texts, so that nothing rounds them. */
export interface Price {
  currency: string;
  quantity: number;
  material: string;
  machine_time: string;
  energy: string;
  failures: string;
  setup: string;
  wages: { step: string; amount: string }[];
  packaging: string;
  quantity_discount: string;
  margin: string;
  minimum_surcharge: string;
  rounding: string;
  tax: string;
  total: string;
  per_piece: string;
}

export interface Quote {
  estimate: Estimate;
  price: Price | null;
}

/** What a caller may know about the rate card of the operator. */
export interface Rates {
  currency: string;
  /** The first is the default. */
  materials: string[];
}

export interface Note {
  code: string;
  message: string;
  step?: string;
  /** Numbers and names in the message; absent without any. */
  values?: Record<string, string | number>;
}

export interface Loss {
  feature: string;
  step: string;
}

export interface FileReport {
  format: string;
  bytes?: number;
  faces?: number;
  parts?: number;
  size_mm?: Triple | null;
  frame?: { unit: string; up: string } | null;
}

export interface Inspection {
  source: FileReport;
  model: {
    size_mm: Triple;
    faces: number;
    vertices: number;
    parts: number;
    bodies: number;
    cavities: number;
    holes: number;
    open_edges: number;
    nonmanifold_edges: number;
    inconsistent_edges: number;
    degenerate_faces: number;
    watertight: boolean;
    volume_mm3: number | null;
    area_mm2: number;
    features: string[];
    findings?: Finding[];
  };
  /** What the reader reports; absent on an older server. */
  figures?: Record<string, unknown>;
  notes: Note[];
}

/** What the surface can be colored by. */
export type Measure = "thickness" | "overhang";

/** Scale of a measure that colors a preview. */
export interface MeasureScale {
  measure: Measure;
  unit: string;
  /** Value of the last color; the first one is 0. */
  top: number;
  limit: number;
  /** Whether there are greater values, which have the last color. */
  is_open: boolean;
  /** At equal distances. */
  colors: string[];
  /** Color of surfaces without a value. */
  neutral: string;
}

/** Facts in `asset.extras.meshhub` of a preview. */
export interface PreviewFacts {
  triangles: number;
  is_reduced: boolean;
  inspection: Inspection;
  /** Null for the colors of the model. */
  scale: MeasureScale | null;
  /** Bytes of the file of a conversion, for a draft. */
  file_bytes?: number | null;
}

export interface Report {
  source: FileReport;
  target: FileReport;
  steps?: { step: string; kind: string; seconds: number; figures?: Record<string, unknown> }[];
  losses?: Loss[];
  notes?: Note[];
  seconds?: number;
}
