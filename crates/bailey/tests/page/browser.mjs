// A real browser at the page, and what is looked at wherever it goes.

import { createRequire } from "node:module";
import assert from "node:assert/strict";
import fs from "node:fs";

const { LINK, CHROMIUM, MODULES, SHOTS } = process.env;
const require = createRequire(`${MODULES}/`);
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core"), "utf8");

export const base = new URL(LINK).origin;
export const PATIENCE = 60000;

export async function open(options = {}) {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args });
  const context = await browser.newContext({ viewport: { width: 1200, height: 850 }, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(`${error.message}\n${error.stack}`));
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted/.test(message.text())) wrong.push(message.text());
  });
  // Nothing is asked of anybody but the home.
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== base) wrong.push(`asked ${request.url()}`);
  });
  return { browser, context, page, wrong };
}

// No finding of axe-core's, in this state.
export async function accessible(page, what) {
  await page.locator("main .view[aria-busy]").waitFor({ state: "detached" });
  // The page's own policy lets no other script in; the driver's goes around it.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const found = violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.html).slice(0, 3).join(" ")}`);
  assert.deepEqual(found, [], what);
  // At any width nothing is cut off sideways.
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(sideways <= 0, `${what} is ${sideways} pixels too wide`);
}

export async function shot(page, name) {
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/${name}.png` });
}
