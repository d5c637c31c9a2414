/** Command lines, whose options are those of the service. */

import type { OtherOptions, Supported } from "./index.js";

/** A command line that cannot be understood. */
export class UsageError extends Error {}

export interface CommandLine {
  paths: string[];
  /** Flags of the command, such as "server"; false and "" for those that are absent. */
  own: { server: string; force: boolean; json: boolean };
  /** Options of the service by name. */
  options: OtherOptions;
}

/** Return the names of the options that are yes or no. */
export function listSwitches(supported: Supported): Set<string> {
  const switches = new Set<string>();
  const groups = [
    ...Object.values(supported.formats), ...supported.operations, ...supported.checks, { options: supported.options },
  ];
  for (const group of groups) {
    const properties = (group.options as { properties?: Record<string, { type?: unknown }> }).properties ?? {};
    for (const [name, schema] of Object.entries(properties)) if (isSwitch(schema)) switches.add(name);
  }
  return switches;
}

function isSwitch(schema: { type?: unknown; anyOf?: { type?: unknown }[] }): boolean {
  const types = [schema.type, ...(schema.anyOf ?? []).map((each) => each.type)].flat();
  return types.includes("boolean") && types.every((type) => type === "boolean" || type === "null" || type === undefined);
}

/** Return the address of the service: the flag --server, or MESHHUB_SERVER. */
export function findServer(words: readonly string[], environment: Record<string, string | undefined>): string {
  const index = words.findIndex((word) => word === "--server" || word.startsWith("--server="));
  const word = words[index];
  const server = word?.includes("=") ? word.slice(word.indexOf("=") + 1) : index < 0 ? undefined : words[index + 1];
  return server ?? environment.MESHHUB_SERVER ?? "http://127.0.0.1:8000";
}

/** Read the words after the command. */
export function readWords(words: readonly string[], switches: ReadonlySet<string>): CommandLine {
  const line: CommandLine = { paths: [], own: { server: "", force: false, json: false }, options: {} };
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (!word.startsWith("--")) {
      line.paths.push(word);
      continue;
    }
    const [flag, ...rest] = word.slice(2).split("=");
    const name = (flag ?? "").replaceAll("-", "_");
    if ((name === "force" || name === "json") && rest.length === 0) {
      line.own[name] = true;
      continue;
    }
    if (switches.has(name) && rest.length === 0) {
      line.options[name] = true;
      continue;
    }
    const value = rest.length > 0 ? rest.join("=") : words[++index];
    if (value === undefined) throw new UsageError(`--${flag} needs a value`);
    if (name === "server") line.own.server = value;
    else line.options[name] = value;
  }
  return line;
}
