/** Presets of the user: settings under names. */

import { useRef, useState } from "preact/hooks";

import { t } from "../i18n";
import { saveFile } from "../save";
import { exportPresets, importPresets, presets, removePreset, savePreset, usePreset } from "../state/presets";
import { Icon } from "./icons";

export function Presets() {
  const input = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState("");
  return (
    <details class="more presets">
      <summary>{t("presets")}</summary>
      <div class="stack">
        {presets.value.length > 0 && (
          <ul aria-label={t("presets")}>
            {presets.value.map((preset) => (
              <li key={preset.name} class="row tight">
                <button class="button small grow" onClick={() => usePreset(preset)}>
                  <span class="ellipsis">{preset.name}</span>
                </button>
                <button
                  class="icon-button small"
                  aria-label={t("remove", { name: preset.name })}
                  onClick={() => removePreset(preset.name)}
                >
                  <Icon name="close" />
                </button>
              </li>
            ))}
          </ul>
        )}
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            const name = new FormData(event.currentTarget).get("preset");
            if (typeof name !== "string" || name.trim() === "") return;
            savePreset(name.trim());
            event.currentTarget.reset();
          }}
        >
          <input
            class="input grow"
            name="preset"
            maxLength={80}
            required
            aria-label={t("presetName")}
            placeholder={t("presetName")}
          />
          <button class="button small" type="submit">
            {t("presetSave")}
          </button>
        </form>
        <div class="row">
          <input
            ref={input}
            class="visually-hidden"
            type="file"
            accept=".json,application/json"
            tabIndex={-1}
            aria-hidden="true"
            onChange={({ currentTarget }) => {
              const file = currentTarget.files?.[0];
              currentTarget.value = "";
              setProblem("");
              if (file) importPresets(file).catch(() => setProblem(t("presetImportFailed", { name: file.name })));
            }}
          />
          <button class="button small" onClick={() => input.current?.click()}>
            {t("presetImport")}
          </button>
          {presets.value.length > 0 && (
            <button class="button small" onClick={() => saveFile(exportPresets())}>
              {t("presetExport")}
            </button>
          )}
        </div>
        {problem && <p role="alert">{problem}</p>}
        <p class="hint">{t("presetsHelp")}</p>
      </div>
    </details>
  );
}
