import { effect } from "@preact/signals";
import { render } from "preact";

import { watchOptions } from "./check";
import { isEmbedded, startEmbedding } from "./embed";
import { language } from "./i18n";
import { start } from "./store";
import "./style.css";
import { App } from "./ui/app";
import { watchColoring } from "./ui/heat-maps";

effect(() => {
  document.documentElement.lang = language.value;
});
const root = document.getElementById("app");
if (root) render(<App isEmbedded={isEmbedded()} />, root);
void start().then(() => {
  startEmbedding();
  watchOptions();
  watchColoring();
  // The view is most of the page: it loads while the user chooses a file.
  void import("./viewer/viewer");
  void import("./viewer/picture");
});
