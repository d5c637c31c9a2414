import { effect } from "@preact/signals";
import { render } from "preact";

import { watchOptions } from "./check";
import { isEmbedded, startEmbedding } from "./embed";
import { language, loadCatalog } from "./i18n";
import { isApp, watchToken } from "./app-token";
import { isUploading } from "./state/items";
import { followFiles, loadSlicers, reportSaves } from "./state/local-files";
import { openLinkedModel } from "./state/linked-model";
import { start } from "./state/loading";
import { watchComparison } from "./state/comparing";
import { watchPictures } from "./state/pictures";
import { watchThumbnails } from "./state/thumbnails";
import "./styles/index.css";
import { App } from "./ui/app";
import { watchDrafts } from "./ui/drafts";
import { heatMaps } from "./ui/heat-maps";
import { watchPrinting } from "./ui/sheet";

effect(() => {
  document.documentElement.lang = language.value;
});

/** Without it, a slow phone shows the picture of the empty page half a second later. */
const VIEWER_DELAY_MS = 1000;

async function open(): Promise<void> {
  watchToken();
  await loadCatalog(language.peek());
  const root = document.getElementById("app");
  if (root) render(<App isEmbedded={isEmbedded()} />, root);
  await start();
  if (isApp) {
    reportSaves();
    void followFiles();
    void loadSlicers();
  }
  startEmbedding();
  watchOptions();
  heatMaps.watch();
  watchDrafts();
  watchPictures();
  watchComparison();
  watchThumbnails();
  // The view is most of the page: it loads while the user chooses a file, after what is seen first.
  setTimeout(() => {
    void import("./viewer/viewer");
    void import("./viewer/picture");
  }, VIEWER_DELAY_MS);
  watchPrinting();
  void openLinkedModel();
}

addEventListener("beforeunload", (event) => {
  if (isUploading.peek()) event.preventDefault();
});
void open();
