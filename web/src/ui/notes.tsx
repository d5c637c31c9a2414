import { t } from "../i18n";
import { applyOption, fields, settings, supported } from "../store";
import { findRemedy } from "../settings";
import type { Note } from "../types";

export function NoteList({ notes }: { notes: Note[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes" aria-label={t("notes")}>
      {notes.map((note) => (
        <li key={note.code + note.message}>
          {note.message}
          <Remedy note={note} />
        </li>
      ))}
    </ul>
  );
}

function Remedy({ note }: { note: Note }) {
  const remedy = findRemedy(note, fields.value);
  if (!remedy) return null;
  const [name, value] = remedy;
  const recipe = supported.value?.recipes[String(settings.value.options["recipe"])];
  if ((settings.value.options[name] ?? recipe?.options[name]) === value) return null;
  const title = fields.value[name]?.title ?? name;
  return (
    <button class="button small" onClick={() => applyOption(name, value)}>
      {t("apply", { option: value === true ? title : `${title}: ${value}` })}
    </button>
  );
}
