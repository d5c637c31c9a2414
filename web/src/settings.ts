/** Settings of a conversion: target and options, their form fields, links and snippets. */

import type { Field, Recipe, Supported } from "./types";

export type Value = string | boolean;

export interface Settings {
  target: string;
  /** Values by option name, as form fields; an absent option keeps its default. */
  options: Record<string, Value>;
}

/** Return whether a value requests something of an operation. */
export function isSet(value: Value | undefined): boolean {
  return value !== undefined && value !== "" && value !== false;
}

/** Return a value of a declaration as the form holds it. */
export function toValue(value: string | number | boolean): Value {
  return typeof value === "boolean" ? value : String(value);
}

/**
 * Return the options with those of another recipe in place of those of the present one. Options that the user changed
 * since then stay.
 */
export function changeRecipe(
  options: Record<string, Value>,
  present: Recipe | undefined,
  next: Recipe | undefined,
): Record<string, Value> {
  const isOfPresent = ([name, value]: [string, Value]): boolean =>
    present !== undefined && name in present.options && toValue(present.options[name] ?? "") === value;
  const own = Object.entries(options).filter((entry) => !isOfPresent(entry));
  const added = Object.entries(next?.options ?? {}).map(([name, value]): [string, Value] => [name, toValue(value)]);
  return Object.fromEntries([...own, ...added]);
}

/** Return settings with what differs between two others: values that were set, changed or removed. */
export function changeSettings(settings: Settings, before: Settings, after: Settings): Settings {
  const isRemoved = (name: string): boolean => name in before.options && !(name in after.options);
  const kept = Object.entries(settings.options).filter(([name]) => !isRemoved(name));
  const set = Object.entries(after.options).filter(([name, value]) => value !== before.options[name]);
  const target = after.target === before.target ? settings.target : after.target;
  return { target, options: Object.fromEntries([...kept, ...set]) };
}

/** What a snippet needs of a model. */
export interface ModelNames {
  name: string;
  companions: { path: string }[];
}

const OPTION_NAME = /^[a-z][a-z0-9_]*$/;
/** Suffixes of option names, which state the unit. */
const UNITS: [suffix: string, unit: string][] = [
  ["_mm", "mm"],
  ["_deg", "°"],
  ["_degrees", "°"],
  ["_seconds", "s"],
  ["_percent", "%"],
  ["_bytes", "B"],
];

export function unitOf(name: string): string {
  return UNITS.find(([suffix]) => name.endsWith(suffix))?.[1] ?? "";
}

/** Return the fields of a conversion by option name. */
export function listFields(supported: Supported): Record<string, Field> {
  const groups = [
    supported.options,
    ...Object.values(supported.formats).map((format) => format.options),
    ...supported.operations.map((operation) => operation.options),
  ];
  return Object.assign({}, ...groups.map((group) => group.properties)) as Record<string, Field>;
}

/** Return the fields of a conversion under the names of their rows in the form: the first one has that of its switch. */
export function listRows(supported: Supported): Record<string, Field> {
  const first = supported.operations.flatMap(({ label, options }) =>
    Object.entries(options.properties)
      .slice(0, 1)
      .map(([name, field]): [string, Field] => [name, { ...field, title: label }]),
  );
  return { ...listFields(supported), ...Object.fromEntries(first) };
}

export type Problem = "enterValue" | "wholeNumber" | "outOfBounds";

/** Number with a unit, which the service converts: 4cm, 45°, 150 %. */
const QUANTITY = /^[-+]?(\d+\.?\d*|\.\d+)\s*(mm|um|[µμ]m|cm|m|in|inch|"|ft|°|deg|degrees?|%|percent|mm\/s|g\/cm[3³])$/i;

/** Return the problem of a value, or null if the service accepts it. */
export function checkValue(field: Field, value: Value | undefined): Problem | null {
  if (field.type !== "integer" && field.type !== "number") return null;
  if (value === undefined || value === "") return null;
  if (field.type === "number" && QUANTITY.test(String(value))) return null;
  const number = Number(value);
  if (!Number.isFinite(number)) return "enterValue";
  if (field.type === "integer" && !Number.isInteger(number)) return "wholeNumber";
  const isBelow = field.minimum !== undefined && number < field.minimum;
  const isAbove = field.maximum !== undefined && number > field.maximum;
  return isBelow || isAbove ? "outOfBounds" : null;
}

/** Return the options to send: set ones only, as text. */
export function toFields({ options }: Settings): [name: string, value: string][] {
  return Object.entries(options)
    .filter(([, value]) => value !== "")
    .map(([name, value]): [string, string] => [name, String(value)])
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Return a text that is equal for equal settings. */
export function keyOf(settings: Settings): string {
  return JSON.stringify([settings.target, toFields(settings)]);
}

/** Return the fragment of a link to the settings. It never holds an API key. */
export function toFragment(settings: Settings): string {
  return new URLSearchParams([["target", settings.target], ...toFields(settings)]).toString();
}

/** Return the settings of a link; unknown options are left out. */
export function fromFragment(fragment: string, fields: Record<string, Field>): Partial<Settings> {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  const options: Record<string, Value> = {};
  for (const [name, value] of parameters) {
    const field = fields[name];
    if (!OPTION_NAME.test(name) || !field) continue;
    if (field.type === "boolean") options[name] = value === "true";
    else if (checkValue(field, value) === null) options[name] = value;
  }
  const target = parameters.get("target");
  return target === null ? { options } : { target, options };
}

/** Name of an option in a message of the service, with quotes and a value or without. */
const MENTION = /(["'`]?)\b([a-z][a-z0-9_]*)(?:=([\w.-]+))?\1/g;

/** Return a message of the service as a sentence, with the titles of options in place of their names. */
export function humanize(message: string, fields: Record<string, Field>): string {
  const text = message.replace(MENTION, (whole, quote: string, name: string, value?: string) => {
    // A name of one word is also a word of the sentence, such as "scale".
    const title = quote || name.includes("_") ? fields[name]?.title : undefined;
    return title === undefined ? whole : value === undefined ? `“${title}”` : `“${title}: ${value}”`;
  });
  return (text.charAt(0).toUpperCase() + text.slice(1)).replace(/\bX-Api-Key\b/g, "API key");
}

function quoteShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

/** Quote a file name for `-F` of curl, which otherwise ends it at `;` and `,`. */
function quoteForm(file: string): string {
  return /[;,"]/.test(file) ? `"${file.replace(/["\\]/g, "\\$&")}"` : file;
}

/** Return the archive of a model with companions, which is its upload and the name of its result. */
function archiveOf(name: string): string {
  return name.replace(/\.[^.]*$/, "") + ".zip";
}

/** Return the curl command of a conversion. The key stays a variable. */
export function toCurl(base: string, model: ModelNames, output: string, settings: Settings, hasKey: boolean): string {
  const key = hasKey ? ['-H "X-Api-Key: $MESHHUB_API_KEY"'] : [];
  const form = [`target=${settings.target}`, ...toFields(settings).map((pair) => pair.join("="))];
  const isArchive = model.companions.length > 0;
  const names = [model.name, ...model.companions.map(({ path }) => path)];
  return [
    ...(isArchive ? ["zip -q - --", ...names.map(quoteShell), "|"] : []),
    "curl -sf",
    ...key,
    isArchive
      ? `-F ${quoteShell(`archive=@-;filename=${quoteForm(archiveOf(model.name))}`)}`
      : `-F ${quoteShell(`file=@${quoteForm(model.name)}`)}`,
    // curl gives `@`, `<` and `;` in values of -F a meaning.
    ...form.map((field) => `${/[@<;]/.test(field) ? "--form-string" : "-F"} ${quoteShell(field)}`),
    `-o ${quoteShell(isArchive ? archiveOf(output) : output)}`,
    quoteShell(new URL(isArchive ? "convert-batch" : "convert", base).href),
  ].join(" ");
}

/** Return a Python snippet of a conversion. */
export function toPython(base: string, model: ModelNames, output: string, settings: Settings, hasKey: boolean): string {
  const data = Object.fromEntries([["target", settings.target], ...toFields(settings)]) as Record<string, string>;
  const isArchive = model.companions.length > 0;
  const names = [model.name, ...model.companions.map(({ path }) => path)];
  const upload = isArchive
    ? [
        "archive = io.BytesIO()",
        'with zipfile.ZipFile(archive, "w") as files:',
        `    for name in ${JSON.stringify(names)}:`,
        "        files.write(name)",
      ]
    : [];
  const file = isArchive
    ? `{"archive": (${JSON.stringify(archiveOf(model.name))}, archive.getvalue())}`
    : `{"file": (${JSON.stringify(model.name)}, Path(${JSON.stringify(model.name)}).read_bytes())}`;
  return [
    ...(isArchive ? ["import io"] : []),
    ...(hasKey ? ["import os"] : []),
    ...(isArchive ? ["import zipfile"] : []),
    "from pathlib import Path",
    "",
    "import httpx",
    "",
    ...upload,
    "response = httpx.post(",
    `    ${JSON.stringify(new URL(isArchive ? "convert-batch" : "convert", base).href)},`,
    `    files=${file},`,
    `    data=${JSON.stringify(data)},`,
    ...(hasKey ? [`    headers={"X-Api-Key": os.environ["MESHHUB_API_KEY"]},`] : []),
    "    timeout=120,",
    ")",
    "response.raise_for_status()",
    `Path(${JSON.stringify(isArchive ? archiveOf(output) : output)}).write_bytes(response.content)`,
  ].join("\n");
}

/** Options that messages of notes recommend, for the ones that do not name theirs in the text. */
const REMEDIES: Record<string, [name: string, value: Value]> = {
  looks_like_inches: ["input_unit", "in"],
  looks_like_meters: ["input_unit", "m"],
  looks_like_millimeters: ["input_unit", "mm"],
  far_from_origin: ["place_on_bed", true],
  invalid_solid: ["repair", true],
  cut_not_closed: ["repair", true],
  result_invalid: ["repair", true],
  open_section: ["repair", true],
  open_solid: ["repair", true],
  surface_model: ["repair", true],
};

/**
 * Return the option that a note or an error recommends: `input_unit=in`, or the name of a flag in quotes.
 * Messages of third-party plug-ins get a button without a change of the page.
 */
export function findRemedy(
  note: { code: string; message: string },
  fields: Record<string, Field>,
): [name: string, value: Value] | null {
  const remedy = REMEDIES[note.code];
  if (remedy && remedy[0] in fields) return remedy;
  for (const [, name = "", value = ""] of note.message.matchAll(/\b([a-z][a-z0-9_]*)=(\w+(?:\.\w+)*)/g)) {
    const field = fields[name];
    if (field) return [name, field.type === "boolean" ? value === "true" : value];
  }
  for (const [, name = ""] of note.message.matchAll(/['`"]([a-z][a-z0-9_]*)['`"]/g)) {
    if (fields[name]?.type === "boolean") return [name, true];
  }
  return null;
}
