/**
 * Measure the page of a running service with Lighthouse, as a desktop and as a phone: empty, and with a model.
 *
 *     npm run lighthouse -- http://127.0.0.1:8000/
 *
 * Fails below 100 points, and below 85 for performance, which is measured while a page loads, so not with a model.
 */

import lighthouse, { desktopConfig, snapshot } from "lighthouse";
import puppeteer from "puppeteer-core";

const WINDOWS = {
  desktop: { config: desktopConfig, viewport: { width: 1350, height: 940 } },
  phone: { config: undefined, viewport: { width: 412, height: 823, isMobile: true, hasTouch: true } },
};
const MIN_POINTS = { performance: 85, accessibility: 100, "best-practices": 100, seo: 100 };

const address = process.argv[2] ?? "http://127.0.0.1:8000/";
const browser = await puppeteer.launch({
  executablePath: process.env.MESHHUB_TEST_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"],
});

function report(state, { lhr }) {
  for (const { id, score } of Object.values(lhr.categories)) {
    const points = Math.round((score ?? 0) * 100);
    console.log(`${state} ${id}: ${points}`);
    if (points >= MIN_POINTS[id]) continue;
    process.exitCode = 1;
    for (const { id: audit, weight } of lhr.categories[id].auditRefs) {
      const { score, title, details } = lhr.audits[audit];
      if (weight === 0 || (score ?? 1) === 1) continue;
      console.log(`  ${title}`);
      for (const { node } of details?.items ?? []) if (node) console.log(`    ${node.snippet}`);
    }
  }
}

try {
  for (const [device, { config, viewport }] of Object.entries(WINDOWS)) {
    const page = await browser.newPage();
    const flags = { onlyCategories: Object.keys(MIN_POINTS) };
    report(`${device}, empty,`, await lighthouse(address, flags, config, page));
    await page.setViewport(viewport);
    await page.goto(address);
    await page.locator("::-p-aria(A broken bracket)").click();
    await page.waitForSelector("::-p-aria([name='Needs repair'][role='heading'])");
    const [, ...others] = flags.onlyCategories;
    report(`${device}, with a model,`, await snapshot(page, { flags: { onlyCategories: others }, config }));
    await page.close();
  }
} finally {
  await browser.close();
}
