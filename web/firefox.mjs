/**
 * Walk through the page of a running service in Firefox, over WebDriver BiDi; pictures and the result go to a folder.
 * `tests/page/test_page_firefox.py` looks at them.
 *
 *     xvfb-run -a node firefox.mjs http://127.0.0.1:8000/ ../examples/bracket.stl /tmp/pictures
 */

import { join, resolve } from "node:path";

import puppeteer from "puppeteer-core";

const [address, model, folder] = process.argv.slice(2);
const TIMEOUT_MS = 120_000;

const browser = await puppeteer.launch({
  browser: "firefox",
  // Without a window, Firefox has no WebGL.
  headless: false,
  executablePath: process.env.MESHHUB_TEST_FIREFOX ?? "/usr/bin/firefox-esr",
  defaultViewport: { width: 1280, height: 800 },
  extraPrefsFirefox: {
    "browser.download.folderList": 2,
    "browser.download.dir": resolve(folder),
    "intl.accept_languages": "en-US",
  },
});
const problems = [];
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  const find = (selector) => page.locator(selector);
  const draw = async (name) => {
    const canvas = await page.waitForSelector("canvas");
    // The view draws all pixels as soon as it rests.
    let last = "";
    for (;;) {
      const picture = await canvas.screenshot({ encoding: "base64" });
      if (picture === last) break;
      last = picture;
      await new Promise((done) => setTimeout(done, 300));
    }
    await canvas.screenshot({ path: join(folder, `${name}.png`) });
  };

  await page.goto(address);
  await find(".formats").wait();
  const [chooser] = await Promise.all([page.waitForFileChooser(), find("::-p-aria(Choose files)").click()]);
  await chooser.accept([resolve(model)]);
  await find("::-p-aria([name='Needs repair'][role='heading'])").wait();
  await draw("model");
  await find("::-p-aria([name='Will it print?'][role='button'])").click();
  await find(".verdict").wait();
  await find("::-p-aria([name='Scale to height'][role='switch'])").click();
  const height = await page.waitForSelector("::-p-xpath(//input[@id=//label[.='Target height in mm']/@for])");
  await height.click({ count: 3 });
  await page.keyboard.type("80");
  await draw("taller");
  await find("::-p-aria([name='Repair and save as 3MF'][role='button'])").click();
  await find("::-p-aria([name='Result'][role='region'])").wait();
  await draw("result");
  await find("::-p-text(Download bracket.3mf)").click();
  await page.setViewport({ width: 360, height: 740 });
  await find("::-p-aria([name='Preferences'][role='button'])").click();
  const languages = await page.waitForSelector("select:has([lang='fr'])");
  await languages.select("fr");
  await page.keyboard.press("Escape");
  await find("::-p-text(Télécharger bracket.3mf)").wait();
  const width = await page.evaluate("document.documentElement.scrollWidth");
  await page.screenshot({ path: join(folder, "phone.png") });
  console.log(JSON.stringify({ problems, width }));
} catch (error) {
  const [page] = (await browser.pages()).slice(-1);
  await page?.screenshot({ path: join(folder, "failure.png") });
  throw error;
} finally {
  await browser.close();
}
