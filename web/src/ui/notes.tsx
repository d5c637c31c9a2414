import { describeNote, formatNumber, t } from "../i18n";
import { findRemedy, humanize, unitOf, type Value } from "../settings";
import { nameValues } from "../state/failures";
import { setOption, settings } from "../state/form";
import { fields, rows } from "../state/service";
import type { Note } from "../types";

export function NoteList({ notes }: { notes: Note[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes" aria-label={t("notes")}>
      {notes.map((note) => (
        <li key={note.code + note.message}>
          {describeNoteText(note)}
          <Remedy note={note} />
        </li>
      ))}
    </ul>
  );
}

/** Return what a note says, in the language of the page. */
export function describeNoteText(note: Note): string {
  return describeNote(note.code, nameValues(note.values ?? {})) ?? humanize(note.message, rows.value);
}

/** Original error message of the service, collapsed by default. */
export function Details({ text, isOpen = false }: { text: string; isOpen?: boolean | undefined }) {
  return (
    <details class="details" open={isOpen}>
      <summary>{t("details")}</summary>
      <span lang="en">{text}</span>
    </details>
  );
}

function Remedy({ note }: { note: Note }) {
  const remedy = findRemedy(note, fields.value);
  if (!remedy) return null;
  const [name, value] = remedy;
  if (settings.value.options[name] === value) return null;
  return (
    <button class="button small" onClick={() => setOption(name, value)}>
      {t(value === true ? "turnOn" : "apply", { option: nameValue(name, value) })}
    </button>
  );
}

/** Return an option with its value, and with the unit if the name of its row does not have it. */
export function nameValue(name: string, value: Value): string {
  const { title: label = name, type } = rows.value[name] ?? {};
  if (value === true) return label;
  const number = type === "string" ? NaN : Number(value);
  const unit = unitOf(name);
  const text = Number.isNaN(number) ? String(value) : formatNumber(number, 6);
  return t("labeled", { label, text: label.endsWith(unit) ? text : `${text} ${unit}` });
}
