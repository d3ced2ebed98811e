// What a real home does seldom, or never while one looks, played to the page: answers that are lost, connections that end, commands
// that do not do all they were to, and a model that never pauses.

import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";

const PAGE = new URL("../../../web/page/", import.meta.url);
const TYPES = { html: "text/html", css: "text/css", js: "text/javascript", svg: "image/svg+xml" };
const ID = "01JZZZZZZZZZZZZZZZZZZZZZZZ";

// What is played: the lines of each view and act, what becomes of what is said, and who looks on.
const views = {};
const acts = {};
const said = [];
const done = [];
let take = (response) => response.writeHead(202).end("{}");
let enter = (response) => response.end('{"done":"bearer"}');
let looking = null;
// Behind which line it asks to go on.
let asked = "";
let streams = 0;
let recalls = 0;
let line = 0;
// How long a view takes, in milliseconds; what it tells is what is so then.
let slowness = 0;
// Who follows, and whether nobody can.
const followed = new Set();
let away = false;
// Whether nobody is let in.
let refuse = false;

const ndjson = (lines) => typeof lines === "string" ? lines : lines.map((it) => `${JSON.stringify(it)}\n`).join("");
const body = async (request) => JSON.parse(Buffer.concat(await request.toArray()).toString());
const server = http.createServer(async (request, response) => {
  const [path, query] = request.url.split("?");
  const name = path.replace("/api/", "");
  if (path === "/api/login") return enter(response);
  if (refuse && path.startsWith("/api/")) return response.writeHead(401).end('{"error":"log in"}');
  if (path === "/api/do") {
    done.push(await body(request));
    await new Promise((begun) => setTimeout(begun, slowness));
    return response.end(ndjson(acts[done.at(-1).act]));
  }
  if (path.startsWith("/api/streams/")) {
    said.push({ ...(await body(request)), stream: path.split("/")[3] });
    return take(response);
  }
  if (path.endsWith("/events")) {
    if (away) return response.destroy();
    followed.add(response);
    response.on("close", () => followed.delete(response));
    looking = response;
    asked = query ?? "";
    streams += 1;
    response.write(ndjson([{ type: "stream", stream: `s${streams}` }]));
    // Whoever goes on behind a line of this run has been told.
    if (asked.startsWith(`run=${run}&`)) return undefined;
    return happens({ type: "session", session: ID, workspace: "/p", model: "test/model", resumed: true });
  }
  if (path.startsWith("/api/")) {
    if (name === `sessions/${ID}`) recalls += 1;
    await new Promise((done) => setTimeout(done, slowness));
    if (request.method === "POST") return response.end(JSON.stringify({ done: ID }));
    return response.end(ndjson(views[name] ?? []));
  }
  if (path === "/metrics") return response.end("bailey_questions 0\n");
  const file = path === "/" ? "index.html" : path.slice(1);
  response.setHeader("content-type", TYPES[file.split(".").at(-1)]);
  return response.end(fs.readFileSync(new URL(file, PAGE)));
});
await new Promise((up) => server.listen(0, "127.0.0.1", up));
process.env.LINK = `http://127.0.0.1:${server.address().port}/#code=0`;
const { base, open } = await import("./browser.mjs");

let run = "a";
let seq = 1;
function happens(event) {
  line += 1;
  looking.write(ndjson([{ v: 1, seq: String(seq), ...event, run, line }]));
}
const turn = (key) => {
  happens({ type: "accepted", key });
  happens({ type: "end", reason: "answered", error: null });
};
const until = async (is) => {
  for (const end = Date.now() + 20000; !is(); ) {
    assert.ok(Date.now() < end, `in vain: ${is}, ${JSON.stringify(said)}`);
    await new Promise((done) => setTimeout(done, 20));
  }
};

const { browser, context, page, wrong } = await open();
page.setDefaultTimeout(10000);
const see = (text) => page.getByText(text).first().waitFor();
const go = async (view) => {
  await page.goto("about:blank");
  await page.goto(`${base}/#/${view}`);
  await page.locator("main h1").waitFor();
  await page.locator("main .view[aria-busy]").waitFor({ state: "detached" });
};
const box = page.getByLabel("Message to the agent");
const persons = () => page.locator(".person .words").allInnerTexts();
const say = async (text) => {
  const before = said.length;
  await box.fill(text);
  await page.keyboard.press("Enter");
  await until(() => said.length > before);
  return said.at(-1);
};

// That no model is there yet says how the command ended, and hides no conversation. What says nothing is not nothing.
views.status = [{ pid: 1, version: "0", since: "2026-01-01T00:00:00Z", sessions: [], channels: [] }];
views.models = [{ uses: [], providers: [] }, { type: "ended", code: 4 }];
views.sessions = [{ id: ID, title: "the one", workspace: "/p", model: "test/model", state: "done", changes: "none", says: "no changes", spent: [{ unit: "tokens", used: "1200" }, { unit: "USD", used: "1" }], updated: "2026-01-01T00:00:00Z" }];
await page.goto(process.env.LINK);
await see("the one");
assert.equal(await page.locator("main .trouble").count(), 0);
// A new one is begun in front of all that there are; that everything is stopped is said here, too.
assert.equal(await page.locator("main .begin + .list").count(), 1);
views.status[0].stopped = "2026-01-01T00:00:00Z";
await go("");
await see("Everything has been stopped since");
delete views.status[0].stopped;
for (const [code, words] of [[5, "It ended before it was done (exit code 5)"], [null, "It took too long and was ended"]]) {
  views.sessions = [{ type: "ended", code }];
  await go("sessions");
  await see(words);
  assert.equal(await page.getByText("There are none.").count(), 0);
}
views.audit = [{ seq: "1", type: "genesis", time: "2026-01-01T00:00:00Z" }, { type: "ended", code: null }];
await go("audit");
await see("It took too long and was ended");

// Who comes while the model writes, without a pause, sees it, can stop it, and speak. Its turn's beginning is kept no more.
views[`sessions/${ID}`] = [{ entry: { seq: "1", type: "accepted" }, payload: "what was asked" }];
let writing = setInterval(() => looking && happens({ type: "text", text: "and on " }), 20);
const begun = Date.now();
await go(`chat/${ID}`);
await page.locator(".agent").getByText("and on").waitFor();
await page.locator(".bar .badge").getByText("works", { exact: true }).waitFor();
await page.getByRole("button", { name: "Stop", exact: true }).click();
assert.ok(Date.now() - begun < 8000, `it took ${Date.now() - begun} ms`);
await until(() => said.length === 1);
assert.equal(said[0].op, "cancel");
const first = await say("while it writes");
clearInterval(writing);
turn(first.key);
await see("at rest");
assert.deepEqual(await persons(), ["what was asked", "while it writes"]);
assert.equal(await page.locator(".sent").count(), 0);

// The answer to what was said is lost: the words are there, and said again they are the same message.
take = (response) => response.destroy();
const lost = await say("once");
await see("The daemon does not answer");
await page.waitForFunction(() => document.querySelector("textarea").value === "once");
take = (response) => response.writeHead(202).end("{}");
await box.press("Enter");
await until(() => said.at(-1) !== lost);
assert.equal(said.at(-1).key, lost.key);
turn(lost.key);
await page.waitForFunction(() => !document.querySelector(".sent"));
assert.deepEqual((await persons()).slice(2), ["once"]);
// The same words, when they were heard, are another message.
const another = await say("once");
assert.notEqual(another.key, lost.key);
turn(another.key);
await page.waitForFunction(() => !document.querySelector(".sent"));
// It was heard after all, before it is said again: the box is empty, and it stands there.
take = (response) => response.destroy();
const heard = await say("heard");
await page.waitForFunction(() => document.querySelector("textarea").value === "heard");
await box.fill("heard\nand more");
turn(heard.key);
await page.waitForFunction(() => document.querySelector("textarea").value === "and more");
assert.deepEqual((await persons()).slice(3), ["once", "heard"]);
take = (response) => response.writeHead(202).end("{}");

// What is refused comes back, in front of what was written since; what is refused of other things does not touch it.
const refused = await say("not now");
await box.fill("then this");
happens({ type: "failed", op: "changes", error: "a turn is running" });
await see("a turn is running");
assert.equal(await page.locator(".sent").innerText(), "You\nnot now");
looking.write(ndjson([{ v: 1, seq: "1", type: "failed", op: "say", error: "the daemon is ending" }]));
await page.waitForFunction(() => document.querySelector("textarea").value === "not now\nthen this");
assert.equal(await page.locator(".sent").count(), 0);
await box.fill("");
assert.equal((await say("not now")).key, refused.key);
turn(refused.key);
await page.waitForFunction(() => !document.querySelector(".sent"));

// A session dies before it says that it heard something: the next one is told the same again, under the same name.
const kept = await say("do not lose this");
await page.locator(".sent").waitFor();
[run, line] = ["b", 0];
looking.end();
await until(() => said.at(-1).stream !== kept.stream);
assert.deepEqual({ ...said.at(-1), stream: kept.stream }, kept);
assert.equal(await page.locator(".sent").count(), 1);
happens({ type: "repeated", key: kept.key, text: "", ended: "answered" });
await page.waitForFunction(() => !document.querySelector(".sent"));
assert.deepEqual(await persons(), ["what was asked", "do not lose this"]);
// It dies after it wrote that down: nothing is said again.
const written = await say("this is written down");
views[`sessions/${ID}`].push({ entry: { seq: "1", type: "accepted", key: written.key }, payload: "this is written down" });
[run, line] = ["c", 0];
const before = streams;
looking.end();
await until(() => streams > before);
await see("at rest");
await page.waitForTimeout(300);
assert.equal(said.at(-1), written, "it was said again");
assert.deepEqual(await persons(), ["what was asked", "this is written down"]);
assert.equal(await page.locator(".sent").count(), 0);
// Only the connection ends: what happened meanwhile comes, with what was said here.
const told = await say("told by the same one");
line += 1;
const ofSaid = { v: 1, seq: "1", type: "said", text: told.text, by: "owner at the page (page 1)", run, line };
const was = looking;
looking = null;
was.end();
await until(() => looking);
looking.write(ndjson([ofSaid]));
turn(told.key);
await page.waitForFunction(() => !document.querySelector(".sent"));
await see("at rest");
assert.equal(said.at(-1), told, "it was said again");
assert.deepEqual((await persons()).slice(-1), ["told by the same one"]);
assert.equal((await persons()).length, 3);
// The same person has the same name as it happens and from the journal, and a window that of its conversation.
assert.equal(await page.title(), "what was asked · Bailey");
const mine = await say("mine");
happens({ type: "said", text: "mine", by: "owner at the page (page 7)" });
turn(mine.key);
happens({ type: "said", text: "another's", by: "owner at the page (page 8)" });
happens({ type: "said", text: "in another tab", by: "owner at the page (page 7)" });
happens({ type: "said", text: "a phone's", by: "user Ann (phone 12)" });
await page.locator(".person").getByText("a phone's").waitFor();
const names = async () => (await page.locator(".person .who").allInnerTexts()).slice(-4);
assert.deepEqual(await names(), ["You", "page 8", "You", "user Ann (phone 12)"]);
const by = (channel, id, name = "at the page", role = "owner") => ({ channel, id, name, role });
const kept_before = views[`sessions/${ID}`];
views[`sessions/${ID}`] = [["7", "mine"], ["8", "another's"], ["7", "in another tab"]]
  .map(([id, payload]) => ({ entry: { seq: "1", type: "accepted", by: by("page", id) }, payload }))
  .concat({ entry: { seq: "1", type: "accepted", by: by("phone", "12", "Ann", "user") }, payload: "a phone's" });
await page.reload();
await see("at rest");
assert.deepEqual(await names(), ["You", "page 8", "You", "user Ann (phone 12)"]);
await page.getByRole("link", { name: "Timeline" }).click();
for (const name of ["You said", "page 8 said", "user Ann (phone 12) said"]) await see(name);
views.browsers = [7, 8].map((login) => ({ login, kind: "browser", name: `Firefox ${login}`, since: "", seen: "" }));
await go("settings");
assert.equal(await page.getByRole("row", { name: "this browser" }).getByText("Firefox 7").count(), 1);
views[`sessions/${ID}`] = kept_before;
await go(`chat/${ID}`);
await see("at rest");

// Who leaves the view meanwhile finds it on its way.
const left = await say("and I am off");
await page.getByRole("link", { name: "Timeline" }).click();
await see("Timeline of");
looking = null;
await page.goBack();
await until(() => said.at(-1) !== left);
assert.equal(said.at(-1).key, left.key);
turn(left.key);
await see("at rest");
assert.deepEqual((await persons()).slice(-1), ["and I am off"]);

// While the daemon is away what is said waits, in sight, and is what stood there when it was sent; what is written since stays in the box.
away = true;
const words = said.length;
looking.destroy();
await see("The daemon does not answer, so this page shows nothing new.");
await box.fill("said in vain");
await page.keyboard.press("Enter");
await page.locator(".sent").getByText("Your message waits for the connection.").waitFor();
assert.equal(await page.locator(".sent .words").innerText(), "said in vain");
assert.equal(await box.inputValue(), "");
await page.keyboard.type("and this is not sent");
assert.equal(await page.getByText("The daemon does not answer, so").count(), 1);
await page.waitForTimeout(1500);
assert.equal(said.length, words);
away = false;
await until(() => said.length > words);
assert.equal(said.at(-1).text, "said in vain");
turn(said.at(-1).key);
await page.waitForFunction(() => !document.querySelector(".sent"));
await see("at rest");
await page.waitForTimeout(300);
assert.equal(said.length, words + 1);
assert.equal(await box.inputValue(), "and this is not sent");
assert.equal(await page.getByText("The daemon does not answer").count(), 0);
assert.equal(await page.getByText("Your message waits for the connection.").count(), 0);
await box.fill("");

// Who speaks before the past is there sees the answer once, though the journal has it by the time that it is read.
slowness = 1000;
views[`sessions/${ID}`] = [{ entry: { seq: "1", type: "accepted" }, payload: "what was asked" }];
[run, line] = ["d", 0];
await page.goto("about:blank");
const read = recalls;
await page.goto(`${base}/#/chat/${ID}`);
await until(() => recalls > read);
const early = await say("the early one");
views[`sessions/${ID}`].push({ entry: { seq: "2", type: "accepted", key: early.key }, payload: early.text });
seq = 2;
happens({ type: "accepted", key: early.key });
happens({ type: "text", text: "caught" });
views[`sessions/${ID}`].push({ entry: { seq: "3", type: "reply" }, payload: '{"text":"caught"}' });
seq = 3;
happens({ type: "end", reason: "answered", error: null });
await see("at rest");
assert.deepEqual(await persons(), ["what was asked", "the early one"]);
assert.deepEqual(await page.locator(".agent .words").allInnerTexts(), ["caught"]);
[slowness, seq] = [0, 1];

// Of a long turn what came in its middle is kept no more, but that it works: the journal has the rest, and nothing is there twice.
looking = null;
const reply = (text, call) => JSON.stringify({ text, calls: [{ id: call, name: "fs_read", arguments: "{}" }] });
views[`sessions/${ID}`] = [
  { entry: { seq: "1", type: "accepted" }, payload: "a long one" },
  { entry: { seq: "2", type: "reply" }, payload: reply("first", "c1") },
  { entry: { seq: "3", type: "observation", call: "c1", ok: true }, payload: "one" },
  { entry: { seq: "4", type: "reply" }, payload: reply("second", "c2") },
  { entry: { seq: "5", type: "observation", call: "c2", ok: true }, payload: "two" },
];
await page.goto("about:blank");
await page.goto(`${base}/#/chat/${ID}`);
await until(() => looking);
happens({ type: "accepted" });
line += 700;
seq = 4;
happens({ type: "call", call: "c2", tool: "fs_read", target: "x" });
seq = 5;
happens({ type: "result", call: "c2", ok: true, summary: "read", text: "two", duration_ms: "1" });
await page.locator(".bar .badge").getByText("works", { exact: true }).waitFor();
assert.deepEqual(await page.locator(".agent .words").allInnerTexts(), ["first", "second"]);
assert.equal(await page.locator("details.tool").count(), 2);
assert.deepEqual(await page.locator("details.tool pre").allTextContents(), ["one", "two"]);
happens({ type: "end", reason: "answered", error: null });
await see("at rest");
seq = 1;

// Who was cut off gets what came meanwhile, also where that was put together; but whoever has a part of it asks for all once more, and
// has nothing twice.
looking = null;
views[`sessions/${ID}`] = [{ entry: { seq: "1", type: "accepted" }, payload: "in pieces" }];
await page.goto("about:blank");
await page.goto(`${base}/#/chat/${ID}`);
await until(() => looking);
happens({ type: "accepted" });
await page.locator(".bar .badge").getByText("works", { exact: true }).waitFor();
const from = line + 1;
const joined = (text, line) => ({ v: 1, seq: "1", type: "text", text, run, from, line });
const cut = async () => {
  const was = looking;
  looking = null;
  was.end();
  await until(() => looking);
};
const shown = recalls;
await cut();
assert.equal(asked, `run=${run}&line=${from - 1}`);
looking.write(ndjson([joined("one two three", from + 2)]));
await page.locator(".agent").getByText("one two three").waitFor();
line = from + 2;
happens({ type: "text", text: " four" });
await page.locator(".agent").getByText("one two three four").waitFor();
assert.equal(recalls, shown, "nothing is missing");
await cut();
assert.equal(asked, `run=${run}&line=${from + 3}`);
const within = looking;
within.write(ndjson([joined("one two three four five", from + 4)]));
await until(() => looking !== within);
assert.equal(asked, "");
looking.write(ndjson([{ v: 1, seq: "1", type: "accepted", run, line: from - 1 }, joined("one two three four five", from + 4)]));
line = from + 4;
happens({ type: "end", reason: "answered", error: null });
await see("at rest");
assert.deepEqual(await page.locator(".agent .words").allInnerTexts(), ["one two three four five"]);
assert.deepEqual(await persons(), ["in pieces"]);

// What nobody sees keeps no connection, and goes on where it was when somebody does.
const show = (page, is) =>
  page.evaluate((is) => {
    Object.defineProperty(document, "hidden", { value: !is, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, is);
assert.equal(followed.size, 1);
await show(page, false);
await until(() => followed.size === 0);
await page.waitForTimeout(700);
assert.equal(followed.size, 0, "it came back, and nobody sees it");
const seen = recalls;
await show(page, true);
await until(() => followed.size === 1);
assert.equal(asked, `run=${run}&line=${line}`);
happens({ type: "accepted" });
await page.locator(".bar .badge").getByText("works", { exact: true }).waitFor();
happens({ type: "end", reason: "answered", error: null });
await see("at rest");
assert.equal(recalls, seen, "nothing is missing");
// However many are seen at once, a browser has connections left for what is said in them, and for more of them: whoever is turned to goes
// first.
const windows = [];
for (let count = 0; count < 7; count += 1) {
  const window = await context.newPage();
  await window.goto(`${base}/#/chat/${ID}`);
  await window.getByText("at rest").waitFor();
  windows.push(window);
}
assert.equal(followed.size, 4);
for (const window of [page, ...windows]) {
  const before = said.length;
  await window.getByLabel("Message to the agent").fill("from one of many");
  await window.keyboard.press("Enter");
  await until(() => said.length > before);
  const heard = [{ type: "accepted", key: said.at(-1).key }, { type: "end", reason: "answered", error: null }];
  followed.forEach((follower) => follower.write(ndjson(heard)));
  await window.waitForFunction(() => !document.querySelector(".sent"));
  assert.ok(followed.size <= 4);
}
const crowded = await Promise.all(windows.map((window) => window.getByText("Other windows of this browser").count()));
await windows[crowded.indexOf(1)].getByRole("button", { name: "Changes" }).click();
await until(() => said.at(-1).op === "changes");
await Promise.all(windows.map((window) => window.close()));
await page.evaluate(() => window.dispatchEvent(new Event("focus")));
await until(() => followed.size === 1);
await page.goto("about:blank");
await page.goto(`${base}/#/chat/${ID}`);
await see("at rest");

// A long answer is drawn block by block, and is in the end what it is when it is drawn at once.
const text = "# One\n\n- a\n- b\n\n1. c\n\n2) d\n3) e\n\n```js\nlet x;\n\n# no heading\n```\n> q\n> r\n\nthe **end**\n";
// It is read out once, when it is whole.
await page.evaluate(() => {
  globalThis.heard = [];
  const hears = (records) => {
    for (const { target } of records) {
      const region = target.nodeType === 1 ? target.closest("[aria-live]") : target.parentElement?.closest("[aria-live]");
      if (region?.getAttribute("aria-live") !== "off") globalThis.heard.push((region ?? target).textContent);
    }
  };
  const all = { childList: true, subtree: true, characterData: true };
  for (const node of [document.querySelector(".log"), document.getElementById("said")]) new MutationObserver(hears).observe(node, all);
});
for (const sign of text) {
  happens({ type: "text", text: sign });
  await new Promise((done) => setTimeout(done, 15));
}
happens({ type: "end", reason: "answered", error: null });
await see("at rest");
await page.waitForFunction(() => globalThis.heard.at(-1).endsWith("The agent has answered."));
const read_out = (await page.evaluate(() => globalThis.heard)).filter((it) => it.includes("no heading"));
assert.equal(read_out.filter((it) => it.startsWith("Agent: ")).length, 1, JSON.stringify(read_out));
assert.ok(read_out.length <= 2, `it was read out ${read_out.length} times`);
assert.equal(await page.locator(".agent ol").last().getAttribute("start"), "2");
assert.equal(await page.locator(".agent ol").first().getAttribute("start"), null);
const [drawn, whole] = await page.evaluate(async (text) => {
  const { markdown } = await import("/markdown.js");
  const node = document.createElement("div");
  node.append(...markdown(text).blocks);
  return [[...document.querySelectorAll(".agent .words")].at(-1).innerHTML, node.innerHTML];
}, text);
assert.equal(drawn, whole);
// Whoever comes later hears nothing of it.
looking = null;
await page.reload();
await until(() => looking);
happens({ type: "text", text: "all of it" });
happens({ type: "end", reason: "answered", error: null });
await page.locator(".agent").getByText("all of it").waitFor();
await page.waitForTimeout(200);
assert.equal(await page.locator("#said").innerText(), "");
// What begins many times and never ends takes no longer than it is long.
const slow = await page.evaluate(async () => {
  const { markdown } = await import("/markdown.js");
  const growing = Array.from({ length: 900 }, (_, at) => "`".repeat(at)).join(" ");
  const texts = ["**a ", "*a ", "[", "![", "[x](", "`` ` ", "**"].map((it) => `x ${it.repeat((400 << 10) / it.length)}`);
  texts.push(`x ${growing}`, `${"[".repeat(200 << 10)}](${"a".repeat(200 << 10)}`, `-${" ".repeat(400 << 10)}x\rx`);
  return texts.map((text) => {
    const begin = performance.now();
    markdown(text);
    return [text.slice(0, 10), performance.now() - begin];
  }).filter(([, time]) => time > 2000);
});
assert.deepEqual(slow, []);

// Stopping everything says what it did not stop, and why it is not all done.
const left_over = { folder: "/home/sessions/x", process: 4711, says: { pid: 4711, since: "2026-01-01T00:00:00Z", command: "bailey chat" } };
const stop = async (lines) => {
  acts.estop = lines;
  await go("logs");
  await page.getByRole("button", { name: "Stop everything" }).click();
  await page.getByRole("button", { name: "Stop everything: press again" }).waitFor();
  // A double click is one press.
  await page.waitForTimeout(500);
  await page.getByRole("button", { name: "Stop everything: press again" }).click();
};
await stop([{ barred: true, ended: 1, left: [left_over], milliseconds: 2100 }, { type: "ended", code: 1 }]);
await see("is in use by process 4711, bailey chat");
await see("It ended before it was done (exit code 1)");
await stop([{ barred: false, ended: 2, left: [{ folder: "/home/sessions/y", process: null, says: null }], milliseconds: 2100 }, { type: "error", error: "the stop could not be written to the journal" }, { type: "ended", code: 1 }]);
await see("the system does not tell by whom");
await see("the stop could not be written to the journal");
assert.equal(await page.locator(".outcome").getByText("Nothing begins until").count(), 0);
await stop([{ barred: true, ended: 3, left: [], milliseconds: 9 }]);
await see("3 running processes ended, after 9 ms.");
assert.equal(await page.locator(".outcome .trouble").count(), 0);

// Where how a command ended is a part of its answer, the rest of it is shown, too.
acts.update_rules = [{ file: "x.toml", diff: "+a\n", warnings: [] }, { type: "ended", code: 3 }];
acts.try_rules = [{ judged: 9, changed: 0, breaking: 0 }];
await go("permissions");
await page.getByLabel("Name of the file").fill("x.toml");
await page.getByLabel("Its whole text").fill("a");
await page.getByRole("button", { name: "Change the rules" }).click();
await page.locator(".outcome .diff").waitFor();
await see("The change is not in force (exit code 3).");
// What came of a change stays, with what it warned of, and the rules in force are those that are; where what was allowed would not be, it
// takes a second press.
const sum = { judged: 9, changed: 2, breaking: 2 };
acts.try_rules = [{ file: "x.toml", diff: "+a\n", warnings: [] }, sum, { dry_run: true, confirm: "a phrase" }];
acts.update_rules = [{ file: "x.toml", diff: "+a\n", warnings: ["the default rules are in force no more"] }, sum, { ok: true }];
const updates = () => done.filter((it) => it.act === "update_rules");
const updated = updates().length;
await page.getByRole("button", { name: "Change the rules" }).click();
await see("2 allowed actions would not be allowed.");
await see("a phrase");
const anyway = page.getByRole("button", { name: "Change the rules anyway" });
await anyway.waitFor();
assert.equal(updates().length, updated);
await page.getByLabel("Its whole text").fill("b");
assert.equal(await anyway.count(), 0, "that was another text");
await page.getByRole("button", { name: "Change the rules" }).click();
await page.getByLabel("The phrase").fill("a phrase");
views.rules = [{ name: "the new one", answer: "deny", tier: "user" }];
await anyway.click();
await page.getByRole("cell", { name: "the new one" }).waitFor();
assert.equal(updates().length, updated + 1);
assert.deepEqual([updates().at(-1).text, updates().at(-1).confirm], ["b", "a phrase"]);
await page.waitForTimeout(2000);
await see("the default rules are in force no more");
await see("in force");

views.verify = [{ ok: true, entries: 7, root: "00" }, { type: "error", error: "the witness does not answer" }, { type: "ended", code: 1 }];
views.audit = [];
await go("audit");
await page.getByRole("button", { name: "Verify the journal" }).click();
await see("7 entries");
await see("the witness does not answer");
views.verify = [{ type: "ended", code: 5 }];
await page.getByRole("button", { name: "Verify the journal" }).click();
await see("It ended before it was done (exit code 5)");
views.walls = [{ check: "kernel", grade: "fail", says: "it is too old", fix: null }, { type: "ended", code: 1 }];
await go("settings");
await see("it is too old");
await see("Not all that is needed is there (exit code 1).");
views.walls = [{ type: "ended", code: 2 }];
await go("settings");
await see("It ended before it was done (exit code 2)");
assert.equal(await page.getByText("The walls were not checked.").count(), 0);

// Whoever goes somewhere by keyboard goes on there, and nothing takes the focus from who just came; the way past the navigation is no
// view's address.
const focused = () => page.evaluate(() => document.activeElement.textContent);
await go("budgets");
assert.equal(await page.evaluate(() => document.activeElement === document.body), true);
await page.getByRole("link", { name: "Audit" }).focus();
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.activeElement.tagName === "H1");
assert.equal(await focused(), "Audit");
assert.equal(await page.locator("nav [aria-current]").innerText(), "Audit");
await page.getByText("Skip to content").focus();
await page.keyboard.press("Enter");
assert.equal(await page.evaluate(() => document.activeElement.id), "main");
assert.ok(page.url().endsWith("#/audit"), page.url());
// So does whoever answers.
const card = { title: "read x", reasons: [], parts: [], caveats: [], reasoned: false };
views.approvals = [{ id: "q1", session: ID, card, target: "x", standing: "open" }];
acts.approve = [];
await go("approvals");
await page.getByRole("button", { name: "Yes, this once" }).focus();
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.activeElement.textContent === "Answered: yes");
// What is answered elsewhere has no buttons any more, and what is asked meanwhile is there.
views.approvals = [{ id: "q2", session: ID, card: { ...card, title: "read y" }, target: "y", standing: "open" }];
await page.getByRole("heading", { name: "read y" }).waitFor();
assert.equal(await page.getByRole("button", { name: "No", exact: true }).count(), 1);
views.approvals = [];
await see("Answered: elsewhere");
assert.equal(await page.getByRole("button", { name: "No", exact: true }).count(), 0);

// Money as people count it, and a log whose lines have their time.
views.budget = [{ today: [{ unit: "tokens", used: "1200" }, { unit: "USD", used: "1250000001" }], limits: [{ span: "day", unit: "USD", limit: "5000000000" }] }];
await go("budgets");
for (const cell of ["1,200", "1.2501", "5.0000"]) await page.getByRole("cell", { name: cell, exact: true }).waitFor();
views.logs = [{ time: "2026-01-02T03:04:05Z", level: "info", what: "page_begun", message: "page begun", pid: 7 }];
await go("logs");
await page.locator("td time[datetime='2026-01-02T03:04:05Z']").waitFor();
assert.equal(await page.locator("td code").last().innerText(), "pid=7");
// One that was cut off hides none of the others, and what was not done is seen to be that.
const error = { time: "2026-01-02T03:04:06Z", level: "error", what: "not_stopped", message: "not stopped" };
views.logs = `${JSON.stringify(views.logs[0])}\n{"time":"2026-01-0\n${JSON.stringify(error)}\n`;
await go("logs");
assert.deepEqual((await page.locator("td code").allInnerTexts()).slice(-3), ["", '{"time":"2026-01-0', "pid=7"]);
assert.equal(await page.locator("td .badge.bad").innerText(), "error");
// What stops everything waits for none of them, and for no double click; nothing is done twice at once.
slowness = 4000;
await page.goto("about:blank");
await page.goto(`${base}/#/logs`);
await page.getByRole("button", { name: "Stop everything" }).waitFor({ timeout: 3500 });
acts.estop = [{ barred: true, ended: 3, left: [], milliseconds: 9 }];
acts.backup = [{ copy: "/home/copies/1" }];
const before_all = done.length;
await page.getByRole("button", { name: "Stop everything" }).dblclick();
await page.getByRole("button", { name: "Make a backup of the home" }).dblclick();
assert.equal(await page.locator("table").count(), 0, "it came too late to be a test");
await see("/home/copies/1");
assert.deepEqual(done.slice(before_all).map((it) => it.act), ["backup"]);
slowness = 0;
// The same of tasks by the clock; and whoever goes elsewhere meanwhile stays there.
views.schedules = [{ name: "nightly", cron: "0 3 * * *", next: "", task: "x", may: [], tokens: null }];
acts.run_schedule = [{ session: ID }];
acts.remove_schedule = [];
await go("schedules");
await page.getByRole("button", { name: "Remove nightly" }).dblclick();
await page.getByRole("button", { name: "Remove nightly: press again" }).waitFor();
await page.getByLabel("When, in the local time of the machine", { exact: true }).focus();
await page.getByRole("button", { name: "Remove nightly", exact: true }).waitFor();
slowness = 1000;
await page.getByRole("button", { name: "Run nightly now" }).dblclick();
await page.getByRole("link", { name: "Budgets" }).click();
await page.waitForTimeout(1500);
assert.ok(page.url().endsWith("#/budgets"), page.url());
assert.deepEqual(done.slice(before_all + 1).map((it) => it.act), ["run_schedule"]);
views.sessions = [{ id: ID, title: "the one", workspace: "/p", model: "test/model", state: "done", changes: "none", says: "no changes", spent: [{ unit: "tokens", used: "1200" }, { unit: "USD", used: "1" }], updated: "2026-01-01T00:00:00Z" }];
await page.getByRole("link", { name: "Chat" }).click();
await see("New conversation");
// The project of the session is chosen already, and its state and cost are told.
await see("no changes");
await see("1k tokens, 0.0001 USD");
await page.getByRole("button", { name: "Start" }).click();
await page.getByRole("link", { name: "Budgets" }).click();
await page.waitForTimeout(1500);
assert.ok(page.url().endsWith("#/budgets"), page.url());
slowness = 0;

// A link that was used lets nobody in, and sends nobody away who is in.
enter = (response) => response.writeHead(401).end('{"error":"log in"}');
const come = async () => {
  await page.goto("about:blank");
  await page.goto(process.env.LINK);
  await page.locator("main h1").waitFor();
};
await come();
await see("the one");
assert.equal(await page.evaluate(() => localStorage.getItem("bailey.bearer")), "bearer");
assert.ok(!page.url().includes("code="), "it stands in the history");
// Where this browser is logged out in one tab, the others show nothing of the home any more: at once, and also where a tab learns it by
// an answer alone.
const other = await context.newPage();
await other.goto(`${base}/#/chat/${ID}`);
await other.getByText("at rest").waitFor();
await page.evaluate(() => localStorage.clear());
await other.getByRole("heading", { name: "Log in" }).waitFor();
assert.equal(await other.locator(".log").count(), 0);
await other.close();
await come();
await see("That link does not work any more.");
await page.evaluate(() => localStorage.setItem("bailey.bearer", "bearer"));
await go(`chat/${ID}`);
await see("at rest");
refuse = true;
await page.evaluate(() => localStorage.clear());
looking.end();
await see("Log in");
refuse = false;

assert.deepEqual(wrong, []);
await browser.close();
server.closeAllConnections();
server.close();
console.log("mishaps: done");
