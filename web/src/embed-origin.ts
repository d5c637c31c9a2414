/** Return the origin of the embedding page; null if the address names none. */
export function parentOrigin(search: string): string | null {
  const value = new URLSearchParams(search).get("origin");
  if (value === null || !URL.canParse(value)) return null;
  const { origin } = new URL(value);
  return origin === "null" ? null : origin;
}
