/**
 * Measure the page of a running service with Lighthouse, as a desktop and as a phone. Fails below 95 points.
 *
 *     npm run lighthouse -- http://127.0.0.1:8000/
 */

import { launch } from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";

/** Points of each category that the page must have. */
const MIN_POINTS = 95;
const CATEGORIES = ["performance", "accessibility", "best-practices"];

const address = process.argv[2] ?? "http://127.0.0.1:8000/";
const chrome = await launch({
  chromePath: process.env.MESHHUB_TEST_CHROMIUM ?? "/usr/bin/chromium",
  chromeFlags: ["--headless", "--no-sandbox"],
});
try {
  for (const [device, config] of Object.entries({ desktop: desktopConfig, phone: undefined })) {
    const flags = { port: chrome.port, onlyCategories: CATEGORIES, output: "json" };
    const { lhr } = await lighthouse(address, flags, config);
    for (const { id, score } of Object.values(lhr.categories)) {
      const points = Math.round((score ?? 0) * 100);
      console.log(`${device} ${id}: ${points}`);
      if (points < MIN_POINTS) process.exitCode = 1;
    }
  }
} finally {
  chrome.kill();
}
