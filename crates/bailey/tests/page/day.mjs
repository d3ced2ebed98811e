// A day: let in by the link, a conversation with a question and changes, all views, and a way out.

import assert from "node:assert/strict";
import http from "node:http";
import { accessible, base, open, PATIENCE, shot } from "./browser.mjs";

const { LINK, PROJECT } = process.env;
const VIEWS = ["", "approvals", "sessions", "permissions", "audit", "schedules", "budgets", "settings", "logs"];

const { browser, context, page, wrong } = await open();
const see = (text) => page.getByText(text).first().waitFor();

// Without a link there is a door.
await page.goto(base);
await see("Log in");
await accessible(page, "the door");
await shot(page, "door");

// With one there is none, and its code stands in no address any more.
await page.goto(LINK);
await page.getByRole("heading", { name: "Conversations" }).waitFor();
await page.reload();
await page.getByRole("heading", { name: "Conversations" }).waitFor();
assert.ok(!page.url().includes("code"), page.url());
await see("There are no conversations yet");
await accessible(page, "no conversations");

// By keyboard alone: the first that is reached leads past the navigation.
await page.keyboard.press("Tab");
assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");

await page.getByLabel("Project, on the machine").fill(PROJECT);
await page.keyboard.press("Enter");
await page.getByLabel("Message to the agent").waitFor();
await see("at rest");
// Whoever began it by keyboard goes on where they write.
await page.keyboard.type("write b.txt, and read the notes");
await page.keyboard.press("Enter");

// The question says what exactly would be done.
const question = page.getByRole("group", { name: /^Question/ });
await question.waitFor();
assert.match(await question.innerText(), /notes\.txt/);
assert.match(await page.locator(".bar .badge").innerText(), /waits for you/);
await accessible(page, "a question");
await shot(page, "question");
await question.getByLabel(/^Why/).fill("they are mine");
await question.getByRole("button", { name: "Yes, this once" }).click();
await see("Answered: yes (they are mine)");

// What the model says is words: no picture is loaded, nothing runs, and what turns text around is seen.
await see("at rest");
const words = await page.locator(".agent .words").last().innerText();
assert.match(words, /<img src=x onerror=/);
assert.match(words, /\[image: private\]/);
assert.match(words, /⟨U\+202E⟩txet/);
assert.equal(await page.locator(".agent img, .agent script, .agent [onerror], .agent a[href^=javascript]").count(), 0);
assert.equal(await page.locator(".agent pre code").last().innerText(), "fn main() {}");
// The number of open questions in front of it is looked at now and then.
await page.waitForFunction(() => document.title === "write b.txt, and read the notes · Bailey");
await page.locator("details.tool summary").first().click();
await accessible(page, "a conversation");
await shot(page, "chat");

// What it changed is shown, and applied.
await page.getByRole("button", { name: "Changes" }).click();
const changes = page.getByRole("group", { name: "Changes of this session" });
await changes.first().waitFor();
assert.match(await changes.first().innerText(), /\+two/);
await shot(page, "changes");
await page.getByRole("button", { name: "Changes" }).click();
await accessible(page, "changes that are looked at twice");
// The same changes are shown once, and applied from there.
const apply = page.getByRole("button", { name: "Apply to the project" });
assert.equal(await changes.count(), 1);
assert.equal(await apply.count(), 1);
await apply.click();
await see("Applied to the project: b.txt");
assert.equal(await apply.count(), 0);
assert.equal(await changes.first().getByText("The changes were applied").count(), 1);
await page.getByRole("button", { name: "Take it back" }).click();
await see("Taken back: b.txt");
assert.equal(await page.getByRole("button", { name: "Take it back" }).count(), 0);
await page.getByRole("button", { name: "Changes" }).click();
await apply.click();
await page.getByRole("button", { name: "Take it back" }).waitFor();

// Who comes back finds all of it, once; and goes on.
await page.reload();
await see("at rest");
await page.getByText("fn main() {}").waitFor();
assert.equal(await page.locator(".person").count(), 1);
assert.equal(await page.locator(".log").getByText("write b.txt, and read the notes").count(), 1);
await page.getByLabel("Message to the agent").fill("go on");
await page.getByRole("button", { name: "Send" }).click();
await see("I am back, and here is more.");
await see("at rest");
assert.equal(await page.locator(".person").count(), 2);

// The timeline of the same session.
await page.getByRole("link", { name: "Timeline" }).click();
await see("allowed: change");
await page.getByLabel("Show").selectOption("decided");
await see("a human is asked");
await accessible(page, "a timeline");
await shot(page, "timeline");

// The use of the session, by the journal: also in the list, with its state in words.
await page.goto(`${base}/#/`);
await see("applied");
assert.match(await page.locator(".list li").first().innerText(), /write b\.txt[\s\S]*applied[\s\S]*tokens/);
await page.locator(".list a").first().click();
await see(/used in all: \d+k? tokens/);

// The next conversation is of a project that is known, or of any other.
await page.goto(`${base}/#/`);
const project = page.getByLabel("Project, on the machine that Bailey runs on", { exact: true });
await project.waitFor();
assert.equal(await project.inputValue(), PROJECT);
assert.match(await page.getByLabel("Model", { exact: true }).innerText(), /test\/model \(default\)/);
await project.selectOption({ label: "Another directory…" });
await page.getByLabel(/Project.*Another directory/).fill("/");
await accessible(page, "a project that is written");

// A few settings are changed here, and a limit becomes no higher.
await page.goto(`${base}/#/settings`);
const change = async (label, value) => {
  const form = page.locator("form.change").filter({ hasText: label });
  await form.getByRole("textbox").fill(value);
  await form.getByRole("button").click();
};
await change("Token limit of a session", "3000000");
await see("New conversations use it");
await accessible(page, "a setting that was changed");
await shot(page, "setting");
await change("Token limit of a session", "4000000");
await see("it can only become lower");

// Each view in the light and in the dark, wide and on a phone.
for (const [colorScheme, width] of [["light", 1200], ["dark", 1200], ["light", 390], ["dark", 390]]) {
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize({ width, height: 850 });
  for (const view of VIEWS) {
    await page.goto(`${base}/#/${view}`);
    await page.locator("main h1").waitFor();
    await accessible(page, `${view || "conversations"}, ${colorScheme}, ${width}`);
    assert.equal(await page.locator("main .trouble").count(), 0, `${view}: ${await page.locator("main").innerText()}`);
    await shot(page, `${view || "conversations"}-${colorScheme}-${width}`);
  }
}
await page.setViewportSize({ width: 1200, height: 850 });
assert.ok(await page.locator("main td time").count(), "the log's lines have no time");

// The journal verifies here, too.
await page.goto(`${base}/#/audit`);
await page.getByRole("button", { name: "Verify the journal" }).click();
await see("whole");

// Rules are changed by the same way as on the machine: shown, tried, confirmed.
await page.goto(`${base}/#/permissions`);
await page.getByLabel("Name of the file").fill("mine.toml");
const rule = '[[rule]]\nname = "no-notes"\nanswer = "deny"\nreason = "not these"\nmatch = { action = ["change", "model", "read"] }\n';
await page.getByLabel("Its whole text").fill(rule);
await page.getByRole("button", { name: "Show what would change" }).click();
await see("It needs the phrase");
const phrase = await page.locator(".outcome p code").last().innerText();
await accessible(page, "a change of the rules");
await shot(page, "rules");
await page.getByRole("button", { name: "Change the rules" }).click();
const anyway = page.getByRole("button", { name: "Change the rules anyway" });
await anyway.waitFor();
await accessible(page, "a change of the rules that takes a second press");
await page.getByLabel("The phrase").fill(phrase);
await anyway.click();
await page.getByRole("cell", { name: "no-notes" }).waitFor();
await page.locator(".outcome .diff").waitFor();

// Another page, of another origin on this machine, is answered nothing and frames nothing. A server that does not defend itself is
// asked by it all the same, and what the model said takes it over where it is taken for HTML: the attacks are live.
const other = http.createServer((_, response) => response.setHeader("content-type", "text/html").end("<title>other</title>"));
const open_to_all = http.createServer((_, response) => response.end());
await new Promise((up) => other.listen(0, "127.0.0.1", up));
await new Promise((up) => open_to_all.listen(0, "127.0.0.1", up));
const evil = await context.newPage();
await evil.goto(`http://127.0.0.1:${other.address().port}/`);
const tried = await evil.evaluate(async ([base, open]) => {
  const tried = [];
  for (const options of [{}, { method: "POST", body: "{}" }, { method: "POST", body: "{}", mode: "no-cors" }, { mode: "no-cors" }]) {
    tried.push(await fetch(`${base}/api/status`, options).then((it) => it.type + it.status, () => "refused"));
  }
  tried.push(await fetch(open, { method: "POST", body: "{}", mode: "no-cors" }).then((it) => it.type, () => "refused"));
  const frame = document.createElement("iframe");
  frame.src = base;
  document.body.append(frame);
  await new Promise((done) => setTimeout(done, 1000));
  let framed = "nothing";
  try {
    framed = frame.contentDocument ? "readable" : "nothing";
  } catch {}
  return [...tried, framed, Object.keys(localStorage).length];
}, [base, `http://127.0.0.1:${open_to_all.address().port}/`]);
assert.deepEqual(tried, ["refused", "refused", "refused", "refused", "opaque", "nothing", 0]);
await evil.evaluate((words) => (document.body.innerHTML = words), words);
await evil.waitForFunction(() => document.title === "taken");
await evil.close();
other.close();
open_to_all.close();

// And out.
await page.goto(`${base}/#/settings`);
await page.getByRole("button", { name: "Log this browser out" }).click();
await see("Log in");
await page.reload();
await see("Log in");
assert.deepEqual(wrong, []);
await browser.close();
console.log("a day in a browser: done");
