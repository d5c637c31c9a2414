/** Facts, problems, settings and result of the active model. */

import { useEffect, useRef } from "preact/hooks";

import { t } from "../i18n";
import { active, isTableShown } from "../state/items";
import { read } from "../state/reading";
import { Facts } from "./facts";
import { Settings } from "./settings";
import { Footer, TableFooter } from "./footer";
import { Problem } from "./problem";
import { Result } from "./result";
import { VerdictBlock } from "./verdict";

export function Panel() {
  const item = active.value;
  const scroll = useRef<HTMLDivElement>(null);
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    // The button that chose the first files is gone: its focus continues here.
    if (document.activeElement === document.body) panel.current?.focus({ preventScroll: true });
  }, [item === null]);
  // A result and an error appear at the top; on a phone, the whole page scrolls.
  useEffect(() => {
    scroll.current?.scrollTo({ top: 0 });
    window.scrollTo({ top: 0 });
  }, [item?.id, item?.output?.file, item?.outputError]);
  if (!item) return null;
  if (isTableShown.value) {
    return (
      <aside ref={panel} class="panel" id="settings" tabIndex={-1} aria-label={t("prepare")}>
        <TableFooter />
        <div class="panel-scroll">
          <Settings />
        </div>
      </aside>
    );
  }
  return (
    <aside ref={panel} class="panel" id="settings" tabIndex={-1} aria-label={t("prepare")}>
      <Footer />
      <div class="panel-scroll" ref={scroll}>
        {item.error && <Problem failure={item.error} onRetry={() => void read(item.id)} />}
        {item.outputError && <Problem failure={item.outputError} />}
        {item.output && <Result item={item} output={item.output} />}
        {item.facts && <Facts item={item} facts={item.facts} />}
        {item.facts && <VerdictBlock item={item} />}
        {item.state !== "failed" && <Settings />}
      </div>
    </aside>
  );
}
