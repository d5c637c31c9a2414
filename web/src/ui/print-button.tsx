import { t } from "../i18n";

/** Button that prints the inspection sheets of the models that are shown. */
export function PrintButton() {
  return (
    <button class="button small" onClick={() => window.print()}>
      {t("printSheet")}
    </button>
  );
}
