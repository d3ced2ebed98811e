// An errand whose daemon is killed in its middle: whoever sits at the page does nothing about it.

import assert from "node:assert/strict";
import { open, shot } from "./browser.mjs";

const { LINK, PROJECT, ERRAND, DONE } = process.env;
const { browser, page, wrong } = await open();
const see = (text) => page.getByText(text).first().waitFor();

await page.goto(LINK);
await page.getByLabel("Project, on the machine").fill(PROJECT);
await page.keyboard.press("Enter");
await page.getByLabel("Message to the agent").fill(ERRAND);
await page.keyboard.press("Enter");
await see("I look first.");
console.log("it works");

const question = page.getByRole("group", { name: /^Question/ });
await question.waitFor();
await question.getByRole("button", { name: "Yes, this once" }).click();
await see(DONE);
await see("at rest");
await shot(page, "errand");
// All of it stands there once.
assert.equal(await page.locator(".person").count(), 1);
const log = page.locator(".log");
assert.equal(await log.getByText("I look first.").count(), 1);
assert.equal(await log.getByText(DONE).count(), 1);
assert.deepEqual(wrong, []);
await browser.close();
