import { signal } from "@preact/signals";

import { isApp } from "../app-token";
import { base } from "../requests";
import { formatBytes, language, languages, t, type Language } from "../i18n";
import { setLanguage, useKey } from "../state/loading";
import { hasKey, remaining, shownPlan } from "../state/service";
import type { Plan } from "../types";
import { setTheme, theme, type Theme } from "../theme";
import { Dialog } from "./dialog";
import { isKeyOpen } from "./dialogs";
import { HistoryButton } from "./history";
import { Icon } from "./icons";

const isMenuOpen = signal(false);

export function Header() {
  const plan = shownPlan.value;
  const detail = plan ? describePlan(plan) : "";
  return (
    <header class="header">
      <a class="brand" href={base}>
        <span class="brand-icon">
          <Icon name="cube" />
        </span>
        meshhub
      </a>
      <span class="spacer" />
      {plan && (
        <span class="plan" title={detail}>
          <span>{t("plan", { plan: plan.label })}</span>
          {remaining.value !== null && remaining.value < 10 && <small>{t("remaining", { n: remaining.value })}</small>}
        </span>
      )}
      <HistoryButton />
      {!isApp && (
        <button class={`button ghost ${hasKey.value ? "on" : ""}`} onClick={() => (isKeyOpen.value = true)}>
          <Icon name="key" />
          <span class="wide-only">{t("apiKey")}</span>
          <span class="narrow-only visually-hidden">{t("apiKey")}</span>
        </button>
      )}
      <button class="button ghost" aria-label={t("menu")} onClick={() => (isMenuOpen.value = true)}>
        <Icon name="sliders" />
      </button>
      {isMenuOpen.value && <MenuDialog detail={detail} />}
    </header>
  );
}

/** What stands for a limit that the operator has lifted. */
const UNLIMITED = "∞";

function describePlan({ label, limits }: Plan): string {
  const { max_file_bytes: bytes, max_batch_files: files, requests_per_minute: requests } = limits;
  return t("planDetail", {
    plan: label,
    size: bytes === null ? UNLIMITED : formatBytes(bytes),
    files: files ?? UNLIMITED,
    requests: requests ?? UNLIMITED,
  });
}

export function KeyDialog() {
  const close = (): void => {
    isKeyOpen.value = false;
  };
  return (
    <Dialog title={t("apiKey")} onClose={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          const data = new FormData(event.currentTarget);
          const key = data.get("key");
          void useKey(typeof key === "string" ? key.trim() : "", data.has("remember"));
          close();
        }}
      >
        <label class="stack tight">
          <span>{t("apiKey")}</span>
          <input class="input" type="password" name="key" autoComplete="off" required />
        </label>
        <label class="check">
          <input type="checkbox" name="remember" /> {t("apiKeyRemember")}
        </label>
        <p class="hint">{t("apiKeyHelp")}</p>
        <div class="row">
          <button class="button primary" type="submit">
            {t("apiKeySave")}
          </button>
          {hasKey.value && (
            <button
              class="button"
              type="button"
              onClick={() => {
                void useKey("", false);
                close();
              }}
            >
              {t("apiKeyRemove")}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

function MenuDialog({ detail }: { detail: string }) {
  const themes: [Theme, string][] = [
    ["auto", t("themeAuto")],
    ["light", t("themeLight")],
    ["dark", t("themeDark")],
  ];
  return (
    <Dialog title={t("menu")} onClose={() => (isMenuOpen.value = false)}>
      <div class="stack">
        <label class="stack tight">
          <span>{t("theme")}</span>
          <select
            class="input"
            value={theme.value}
            onChange={({ currentTarget }) => setTheme(currentTarget.value as Theme)}
          >
            {themes.map(([id, label]) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label class="stack tight">
          <span>{t("language")}</span>
          <select
            class="input"
            value={language.value}
            onChange={({ currentTarget }) => void setLanguage(currentTarget.value as Language)}
          >
            {Object.entries(languages).map(([id, label]) => (
              <option key={id} value={id} lang={id}>
                {label}
              </option>
            ))}
          </select>
        </label>
        {detail && <p class="hint">{detail}</p>}
        {!isApp && <a href="schema">{t("apiDocs")}</a>}
      </div>
    </Dialog>
  );
}
