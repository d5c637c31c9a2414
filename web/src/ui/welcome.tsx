import { t } from "../i18n";
import { supported } from "../state/service";
import { FilePicker } from "./files";
import { Icon } from "./icons";

export function Welcome() {
  const formats = supported.value?.input_formats ?? [];
  return (
    <main class="welcome">
      <div class="drop-zone">
        <span class="drop-icon">
          <Icon name="cube" />
        </span>
        <h1>{t("tagline")}</h1>
        <p>{t("intro")}</p>
        <div class="row center">
          <FilePicker class="button primary large" icon="upload" label={t("chooseFiles")} />
          <FilePicker class="button large" label={t("chooseFolder")} isFolder />
        </div>
        <p class="hint">{t("dropAnywhere")}</p>
        {formats.length > 0 && (
          <ul class="formats" aria-label={t("reads", { formats: "" })}>
            {formats.map((id) => (
              <li key={id}>{id.toUpperCase()}</li>
            ))}
            <li>ZIP</li>
          </ul>
        )}
      </div>
    </main>
  );
}
