// A conversation: what was said and done before, from the journal, and what happens now, from the session's events.

import { button, diff, el, field, fill, picker, plain, say, short, thousands, time, trouble, twice, used, watch, worker } from "./dom.js";
import * as home from "./home.js";
import { markdown } from "./markdown.js";

// How much of a command's output is shown while it runs, in characters.
const OUTPUT_MAX = 64 << 10;
// How much of an answer is read out by itself, in characters.
const READ_MAX = 2000;
// How much of what was said first names a conversation, in characters.
const NAME_MAX = 40;
// How long a first burst of events may pause and last, and a lost connection is left alone, in milliseconds.
const QUIET = 150;
const BURST_MAX = 500;
const PAUSE_MIN = 500;
const PAUSE_MAX = 15000;
// How often a conversation for which there is no connection looks whether there is one.
const PAUSE_PLACE = 2000;
// How long what is pressed meanwhile waits for one.
const OPEN_MAX = 3000;

// The longest diff of an edit that is seen at once, in lines, and a turn whose end is told, in milliseconds.
const DIFF_LINES = 16;
const LONG = 10000;
const EDITS = new Set(["fs.edit", "fs.write", "fs.patch"]);
// What the tools do, in words; others have their names.
const VERBS = {
  "fs.read": "Read",
  "fs.list": "List",
  "fs.exists": "Look for",
  "fs.edit": "Edit",
  "fs.write": "Write",
  "fs.patch": "Change",
  "search.grep": "Search",
  "search.glob": "Find",
  "command.run": "Run",
  "test.run": "Test",
  "git.run": "Run",
  "web.fetch": "Fetch",
  "web.request": "Request",
  "agent.run": "Sub-agent",
};
// What goes with one message: pictures that models take, and other files, in bytes.
const IMAGES = new Set(["image/png", "image/jpeg", "image/webp", "image/gif"]);
const IMAGES_MAX = 3 << 20;
const FILES_MAX = 8 << 20;

const base64 = (file) =>
  new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).split(",").pop());
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });

const wait = (time, signal) =>
  new Promise((done) => {
    const end = () => (clearTimeout(timer), signal?.removeEventListener("abort", end), done());
    const timer = setTimeout(end, time);
    signal?.addEventListener("abort", end);
  });

// What is told of the session itself is told to everybody who comes.
const numbered = (events) => events.filter((event) => event.line !== undefined && event.type !== "session");

// Where it begins: pieces that were put together since have the number of the last of them.
const begin = ({ from, line }) => from ?? line;

// The first of those that follow each other. That something works, and what is asked, is told also where what came behind it is kept
// no more: the journal has that.
function first(events) {
  const all = numbered(events);
  const next = all.findIndex(({ type }) => !["accepted", "going_on", "ask"].includes(type));
  return next > 0 && begin(all[next]) !== all[0].line + next ? all[next] : all[0];
}

// Who spoke, as an entry has it and as an event tells it; at a terminal that is whoever owns all this.
const PAGE = /^owner at the page \(page (\d+)\)$/;
export const whoOf = (by) => (by?.channel === "page" ? home.speaker(by.id) : by && `${by.role} ${by.name} (${by.channel} ${by.id})`);
export const whoTold = (by) => (PAGE.test(by) ? home.speaker(PAGE.exec(by)[1]) : by);

// What was said in each session and is not acknowledged yet, by its key: it is not lost with the view.
const unheard = new Map();
window.addEventListener("left", () => unheard.clear());

// The projects that are known: the newest first, then those whose settings are trusted.
export const projectsOf = (sessions, trusted) => [...new Set([...sessions.map((it) => it.workspace), ...trusted.map((it) => it.project)])];

// The models that can be named: those in use, those that sessions had, and those that Bailey knows of a provider that can be asked.
function modelsOf(models, sessions) {
  const { uses = [], providers = [] } = models[0] ?? {};
  const known = providers.filter((it) => it.key_present).flatMap((it) => [...it.models, ...it.known].map((name) => `${it.provider}/${name}`));
  return [...new Set([...uses.map((it) => it.model), ...sessions.map((it) => it.model), ...known])].filter((it) => it?.includes("/"));
}

export function modelPicker(label, models, sessions, options = {}) {
  const chosen = models[0]?.uses?.find((it) => it.use === "default")?.model;
  const choices = modelsOf(models, sessions).filter((it) => it !== chosen).map((value) => ({ value }));
  // Without a default there is nothing to leave out.
  const first = { value: options.isNamed ? (chosen ?? "") : "", text: chosen ? `${chosen} (default)` : "the configured model (none yet)" };
  return picker(label, [first, ...choices], { other: "Another model…", placeholder: "PROVIDER/NAME", required: true });
}

// How often the list of conversations is looked at, in milliseconds.
const LOOK = 5000;

const BADGES = { works: "run", waits: "ask", interrupted: "ask", paused: "ask", failed: "bad" };
const badgeOf = ({ state, changes }) => BADGES[state] ?? ({ waiting: "ask", uncompared: "ask", applied: "ok" }[changes] ?? "");

// The state of a session in words, as `bailey sessions list` has them.
export const stateOf = (it) => el("span", { class: `badge ${badgeOf(it)}` }, it.says);

// The conversations there are, and the beginning of another.
export async function chats(view, signal) {
  fill(view, el("h1", {}, "Conversations"));
  const look = () => home.list("/api/sessions", { signal });
  const [sessions, status, models, trusted] = await Promise.all([
    look(),
    home.list("/api/status", { signal, codes: true }),
    // That there is no model yet is no reason to show nothing.
    home.list("/api/models", { signal, codes: true }),
    home.list("/api/trusted", { signal }).catch(() => []),
  ]);
  const projects = projectsOf(sessions, trusted).map((value) => ({ value }));
  const where = picker("Project, on the machine that Bailey runs on", projects, { other: "Another directory…", placeholder: "/home/me/project", required: true });
  const model = modelPicker("Model", models, sessions);
  const form = el(
    "form",
    {
      class: "begin",
      onsubmit: async (event) => {
        event.preventDefault();
        form.querySelector(".trouble")?.remove();
        const start = form.querySelector("button");
        start.disabled = true;
        try {
          const body = { directory: where.value, model: model.value || null };
          const session = await home.post("/api/sessions", body);
          // Whoever went elsewhere meanwhile finds it in the list.
          if (signal.aborted) return;
          begun = session;
          location.hash = `#/chat/${begun}`;
        } catch (error) {
          start.disabled = false;
          fill(form, trouble(error));
        }
      },
    },
    el("h2", {}, "New conversation"),
    where.node,
    model.node,
    el("button", { type: "submit", class: "strong" }, "Start"),
  );
  const line = (it) =>
    el(
      "li",
      {},
      el("a", { href: `#/chat/${it.id}` }, it.title || "(no messages yet)"),
      stateOf(it),
      el("span", { class: "dim" }, [it.workspace, it.model, used(it.spent)].filter(Boolean).join(" · "), " · ", time(it.updated)),
    );
  const list = el("ul", { class: "list" });
  const none = el("p", { class: "none" }, "There are no conversations yet. Begin one above.");
  const draw = (all) => {
    const lines = all.filter((it) => !it.is_of_commands).slice(0, 200).map(line);
    // Whoever stands on a line stays there.
    const at = document.activeElement?.closest?.(".list a")?.getAttribute("href");
    list.replaceChildren(...lines);
    if (at) list.querySelector(`a[href="${at}"]`)?.focus();
    none.hidden = lines.length > 0;
    list.hidden = !none.hidden;
  };
  draw(sessions);
  const since = status[0]?.stopped;
  const stopped = since && el("p", { class: "trouble" }, "Everything has been stopped since ", time(since), ". Nothing begins until you run this at the machine: ", el("code", {}, "bailey estop --release"));
  // However long the list is, the form is where it is looked for.
  fill(view, stopped, form, list, none);
  watch(async () => draw(await look()), LOOK, signal);
}

// The one that was begun here last, whose person goes on by keyboard where they write.
let begun = null;

export async function chat(view, signal, id) {
  const conversation = new Conversation(id, signal);
  fill(view, conversation.parts());
  if (id === begun) conversation.words.focus();
  begun = null;
  conversation.follow().catch((error) => signal.aborted || fill(view, trouble(error)));
}

class Conversation {
  constructor(id, signal) {
    Object.assign(this, { id, signal, stream: null, after: null, isWorking: false, isPast: false });
    // Whether a person just turned to it, how often in a row it was not reached, what says so, and which stream is told what waited.
    Object.assign(this, { isFirst: true, failures: 0, lost: null, telling: null, isClosed: false });
    // Ends a pause; lets the stream go, where there is one.
    Object.assign(this, { wake: null, letGo: null, opened: Promise.withResolvers() });
    this.said = unheard.get(id) ?? new Map();
    unheard.set(id, this.said);
    // What had come back into the box went with it.
    for (const [key, it] of this.said) if (it.isBack) this.said.delete(key);
    document.addEventListener("visibilitychange", () => (document.hidden ? this.rest() : this.first()), { signal });
    window.addEventListener("focus", () => this.first(), { signal });
    this.log = el("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: "0" });
    Object.assign(this, { isAtEnd: true, scrollTop: 0 });
    this.log.addEventListener("scroll", () => this.scrolled());
    const grown = new ResizeObserver(() => this.keepEnd());
    grown.observe(this.log);
    const filled = new MutationObserver(() => this.keepEnd());
    filled.observe(this.log, { childList: true, characterData: true, subtree: true });
    signal.addEventListener("abort", () => (grown.disconnect(), filled.disconnect()));
    this.title = el("h1", {}, `Conversation ${short(id)}`);
    this.state = el("span", { class: "badge" }, "connects");
    this.stop = button("Stop", () => this.op({ op: "cancel" }), "danger");
    this.stop.hidden = true;
    this.words = el("textarea", { rows: "3", "aria-label": "Message to the agent", placeholder: "Say something" });
    this.words.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.speak();
      }
    });
    this.status = el("p", { class: "status dim" });
    this.files = [];
    this.chosen = el("p", { class: "chosen dim", "aria-live": "polite" });
    Object.assign(this, { model: "", project: "", context: null, spent: new Map(), waiting: null });
    this.clear();
    this.name(`Conversation ${short(id)}`);
  }

  // A window says which one it is.
  name(text) {
    const [line] = plain(text).trim().split("\n");
    const shown = line.length > NAME_MAX ? `${line.slice(0, NAME_MAX)}…` : line;
    this.title.textContent = shown;
    if (!this.signal.aborted) home.entitle(shown);
  }

  parts() {
    const tools = el(
      "div",
      { class: "tools" },
      this.state,
      this.stop,
      (this.diff = button("Changes", () => this.op({ op: "changes" }))),
      el("a", { class: "button", href: `#/sessions/${this.id}` }, "Timeline"),
    );
    const pick = el("input", {
      type: "file",
      multiple: true,
      hidden: true,
      "aria-label": "Files for the agent",
      onchange: () => (this.attach([...pick.files]), (pick.value = "")),
    });
    this.words.addEventListener("paste", (event) => {
      const { files } = event.clipboardData ?? { files: [] };
      if (files.length) event.preventDefault();
      this.attach([...files]);
    });
    const form = el(
      "form",
      {
        class: "composer",
        onsubmit: (event) => (event.preventDefault(), this.speak()),
        ondragover: (event) => event.preventDefault(),
        ondrop: (event) => (event.preventDefault(), this.attach([...event.dataTransfer.files])),
      },
      this.words,
      pick,
      button("Attach", () => pick.click()),
      el("button", { type: "submit", class: "strong" }, "Send"),
    );
    return [el("div", { class: "bar" }, this.title, tools), this.log, this.chosen, form, this.status];
  }

  clear() {
    Object.assign(this, { calls: new Map(), asks: new Map(), text: null, isNamed: false, offers: {} });
    Object.assign(this, { seen: null, isAtEnd: true });
    this.log.replaceChildren();
  }

  // Files that go with the next message: those that are still read are waited for.
  attach(files) {
    this.reading = Promise.resolve(this.reading).then(() => this.read(files)).catch((error) => this.put(trouble(error)));
    return this.reading;
  }

  async read(files) {
    for (const file of files) {
      const kind = IMAGES.has(file.type) ? "images" : "files";
      const all = this.files.filter((it) => it.kind === kind).reduce((sum, it) => sum + it.size, file.size);
      const [most, words] = kind === "images" ? [IMAGES_MAX, "Pictures of one message have 3 MiB together"] : [FILES_MAX, "Files of one message have 8 MiB together"];
      if (all > most) {
        this.put(trouble(`${plain(file.name)} was not attached. ${words} at most.`));
        continue;
      }
      const bytes = await base64(file);
      this.files.push({ kind, name: file.name, size: file.size, bytes });
    }
    this.attached();
  }

  attached() {
    const remove = (it) => () => ((this.files = this.files.filter((other) => other !== it)), this.attached());
    const shown = this.files.map((it) => [` ${plain(it.name)} `, button("Remove", remove(it))]);
    this.chosen.replaceChildren();
    if (shown.length) fill(this.chosen, "With the next message:", shown);
  }

  // The use of the session in all of its processes, by the journal; what is used from here on is added.
  async price() {
    const [it] = await home.list(`/api/sessions/${this.id}/spent`, { signal: this.signal }).catch(() => []);
    if (!it) return;
    this.spent = new Map(it.spent.map(({ unit, used }) => [unit, BigInt(used)]));
    this.tellStatus();
  }

  uses(unit, count) {
    if (!this.isPast) this.spent.set(unit, (this.spent.get(unit) ?? 0n) + BigInt(count));
  }

  // The row below the message: the model, how full its context is, the cost, and the changes that wait.
  tellStatus() {
    const { context } = this;
    const tokens = context && (context.window ? `context ${Math.round((100 * Number(context.tokens)) / context.window)}% of ${thousands(context.window)}` : `context ${thousands(context.tokens)} tokens`);
    const spent = used([...this.spent].map(([unit, used]) => ({ unit, used })));
    const parts = [this.model, this.project, tokens, spent && `used in all: ${spent}`].filter(Boolean);
    this.status.textContent = plain(parts.join(" · "));
    const count = this.waiting?.files ?? 0;
    this.diff.textContent = count ? `Changes (${count})` : "Changes";
    this.diff.classList.toggle("strong", count > 0);
  }

  // Whether it has to be followed: somebody sees it, or what was said is not heard yet.
  isNeeded() {
    return !document.hidden || home.mayNotify() || [...this.said.values()].some((it) => !it.isBack);
  }

  rest() {
    if (!this.isNeeded()) this.letGo?.();
  }

  // A person turned to it.
  first() {
    this.isFirst = true;
    this.wake?.();
  }

  async pause(time) {
    await Promise.race([wait(time, this.signal), new Promise((wake) => (this.wake = wake))]);
    this.wake = null;
  }

  // Hears the session until the view is left; after a loss it goes on behind the last line that came.
  async follow() {
    let pause = PAUSE_MIN;
    while (!this.signal.aborted) {
      // What nobody sees takes no connection from what somebody does.
      if (!this.isNeeded()) {
        await this.pause(PAUSE_MAX);
        continue;
      }
      const left = new AbortController();
      let isLetGo = false;
      this.letGo = () => ((isLetGo = true), left.abort());
      // Whoever took its place goes before it, whenever a person was here before that.
      const taken = () => ((this.isFirst = false), this.letGo?.());
      const back = await home.place(this.isFirst, taken);
      if (!back) {
        this.crowded();
        await this.pause(PAUSE_PLACE);
        continue;
      }
      this.isFirst = false;
      try {
        const { run, line } = this.after ?? {};
        const query = run ? `?run=${run}&line=${line}` : "";
        const signal = AbortSignal.any([this.signal, left.signal]);
        await this.hear(home.lines(`/api/sessions/${this.id}/events${query}`, { signal }));
        pause = PAUSE_MIN;
      } catch (error) {
        // Whoever is let in anew goes on.
        if (this.signal.aborted || (error.status === 401 && !home.isIn())) return;
        // It cannot be opened: what was said is shown all the same.
        if (error.status > 0 && ![401, 503].includes(error.status)) return this.closed(error);
      } finally {
        this.letGo = null;
        left.abort();
        back();
      }
      if (this.stream) this.opened = Promise.withResolvers();
      this.stream = null;
      if (isLetGo) {
        this.is("connects");
        continue;
      }
      this.missed();
      await this.pause(pause);
      pause = Math.min(pause * 2, PAUSE_MAX);
    }
  }

  // Once more it was not reached. The first time is a moment, such as a daemon's that begins anew.
  missed() {
    this.failures += 1;
    this.is("reconnects", "trouble");
    if (this.failures === 2) {
      this.tell("The daemon does not answer, so this page shows nothing new. It goes on by itself when the daemon answers again. Check at the machine: bailey status", "trouble");
    }
  }

  crowded() {
    this.is("waits");
    this.tell("Other windows of this browser use all its connections. This window goes on when you switch to it, or when you close another one.");
  }

  // Says how it is with the connection, until there is one.
  tell(text, kind = "dim") {
    if (this.lost?.textContent === text) return;
    this.lost?.remove();
    this.lost = el("p", { class: `note ${kind}` }, text);
    this.put(this.lost);
  }

  async closed(error) {
    if (!this.after) this.recall(await this.past().catch(() => []), Infinity);
    this.stream = null;
    this.isClosed = true;
    this.is("closed", "trouble");
    this.stop.hidden = true;
    fill(this.log, trouble(error), button("Try again", () => window.dispatchEvent(new Event("hashchange"))));
    this.isAtEnd = true;
    this.keepEnd();
    // What waits to be said is heard by nobody.
    for (const it of this.said.values()) if (!it.stream) this.back(it);
  }

  // What the journal has.
  past() {
    return home.list(`/api/sessions/${this.id}`, { signal: this.signal });
  }

  // Shows it, up to an entry.
  recall(past, newest) {
    this.clear();
    this.isPast = true;
    past.filter(({ entry }) => Number(entry.seq) <= newest).forEach((it) => this.remember(it));
    this.closeText();
    Object.assign(this, { isPast: false, isWorking: false });
    // What is on its way still is, unless that says that it came.
    for (const it of this.said.values()) {
      Object.assign(it, { isSaid: false, node: it.isBack ? null : this.onItsWay(it) });
    }
  }

  async hear(events) {
    const burst = [];
    const hasCome = this.after === null;
    const wanted = () => {
      const came = events.next();
      // Who has left by then asks no more how it ended.
      came.catch(() => {});
      return came;
    };
    let next = wanted();
    const gather = async (until) => {
      for (;;) {
        const came = await Promise.race([until(), next]);
        if (!came || came.done) return;
        // From here on the session can be spoken to, whatever else comes.
        if (came.value.type === "stream") this.happens(came.value);
        else burst.push(came.value);
        next = wanted();
      }
    };
    await next;
    // What is there already comes at once; whether it joins what is shown is seen by its first line. While the model writes there is
    // no pause behind it.
    const enough = wait(BURST_MAX);
    await gather(() => (burst.length ? Promise.race([enough, wait(QUIET)]) : enough));
    if (!this.joins(burst)) {
      // What it had was left out for it, and is not to be: all of it, once more.
      if (this.isSame(burst)) return void (this.after = null);
      // The events go on from there, also those that come meanwhile.
      const past = this.past();
      await gather(() => past.then(() => null));
      this.recall(await past, Number(first(burst)?.seq ?? Infinity));
    }
    this.isPast = hasCome;
    burst.forEach((event) => this.happens(event));
    this.isPast = false;
    this.shown();
    this.price();
    this.sayAgain();
    for (;;) {
      const { done, value } = await next;
      if (done) return;
      this.happens(value);
      next = wanted();
    }
  }

  // Whether it is of the process of which there is something already.
  isSame(burst) {
    return this.after && burst.every((event) => event.run === undefined || event.run === this.after.run);
  }

  joins(burst) {
    const next = first(burst);
    return this.isSame(burst) && (!next || begin(next) === this.after.line + 1);
  }

  is(text, kind = "") {
    this.state.className = `badge ${kind}`;
    this.state.textContent = text;
  }

  // Says how it is, and shows the newest unless the person looks at what was before.
  shown() {
    const waits = [...this.asks.values()].some((ask) => !ask.over);
    this.tellStatus();
    if (waits) this.is("waits for you", "ask");
    else this.is(this.isWorking ? "works" : "at rest", this.isWorking ? "run" : "");
    this.stop.hidden = !this.isWorking;
  }

  put(node) {
    if (node) this.log.append(node);
    this.keepEnd();
  }

  // Whoever was at the end stays there, whatever grows; whoever went back reads on.
  keepEnd() {
    if (this.isAtEnd) this.log.scrollTop = this.log.scrollHeight;
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.log;
    if (scrollHeight - scrollTop - clientHeight < 80) this.isAtEnd = true;
    else if (scrollTop < this.scrollTop) this.isAtEnd = false;
    this.scrollTop = scrollTop;
  }

  async op(op) {
    try {
      // Whoever presses something in a window that has no connection just now is about to have one.
      if (!this.stream && !this.isClosed) {
        this.first();
        await Promise.race([this.opened.promise, wait(OPEN_MAX, this.signal)]);
      }
      if (!this.stream) throw new Error("There is no connection to the session at the moment.");
      await home.post(`/api/streams/${this.stream}`, op);
      return true;
    } catch (error) {
      this.put(trouble(error));
      return false;
    }
  }

  async speak() {
    await this.reading;
    const text = this.words.value.trim() || (this.files.length ? "See what I attached." : "");
    if (!text) return;
    const { files } = this;
    this.files = [];
    this.attached();
    // What is said is what stood there then: whatever is written from now on is something else, also where there is no connection yet.
    this.words.value = "";
    // A name, so that what is said again is done once: what came back into the box keeps the one that it had.
    const again = [...this.said.values()].find((it) => it.isBack && it.text === text);
    const it = { key: again?.key ?? `page:${crypto.randomUUID()}`, text, files, stream: null };
    // The newest stands last.
    this.said.delete(it.key);
    this.said.set(it.key, it);
    it.node = this.onItsWay(it);
    this.isAtEnd = true;
    this.keepEnd();
    if (this.isClosed) return this.say(it);
    if (!this.stream) {
      if (this.failures) say("There is no connection at the moment. Your message waits for it.");
      return this.first();
    }
    // What was said before, and is said again by this connection in a moment, comes first.
    const isNext = [...this.said.values()].every((other) => other === it || other.isBack || other.stream === this.stream);
    if (isNext) await this.say(it);
  }

  // What is said, and not heard yet; where it has not even been said, it says so.
  onItsWay(it) {
    const node = this.person(it.text, null, true);
    if (!it.stream && !this.stream) fill(node, el("div", { class: "waits dim" }, "Your message waits for the connection."));
    return node;
  }

  async say(it) {
    const { stream } = this;
    it.stream = stream;
    it.node?.querySelector(".waits")?.remove();
    const of = (kind) => (it.files ?? []).filter((file) => file.kind === kind);
    const images = of("images").map(({ bytes }) => bytes);
    const files = of("files").map(({ name, bytes }) => ({ name, bytes }));
    if (await this.op({ op: "say", text: it.text, key: it.key, images, files })) return;
    // It may be acknowledged by now all the same, or be on its way by another connection.
    if (this.said.get(it.key) === it && it.stream === stream && !this.signal.aborted) this.back(it);
  }

  // What was said by a connection that is gone may have been lost with it, and what was said without one waits.
  async sayAgain() {
    const { stream } = this;
    if (!stream || this.telling === stream) return;
    this.telling = stream;
    // What is said meanwhile comes behind it.
    for (const it of this.said.values()) {
      if (this.stream !== stream) break;
      if (!it.isBack && it.stream !== stream) await this.say(it);
    }
    if (this.telling === stream) this.telling = null;
  }

  // Nobody has it, or nobody knows: it is in the box again, in front of what was written there since.
  back(it) {
    if (it.isBack) return;
    it.node?.remove();
    Object.assign(it, { node: null, isBack: true });
    this.files.unshift(...(it.files ?? []));
    this.attached();
    this.words.value = [it.text, this.words.value].filter(Boolean).join("\n");
    this.rest();
  }

  // The session has it: it is not to be said again.
  heard(key, node) {
    const it = this.said.get(key);
    if (!it) return;
    this.said.delete(key);
    home.known(it.by);
    const { value } = this.words;
    if (it.isBack && `${value}\n`.startsWith(`${it.text}\n`)) this.words.value = value.slice(it.text.length + 1);
    (node ?? it.node ?? this.person(it.text)).classList.remove("sent");
    this.rest();
  }

  // A session takes what is said in turn, and tells everybody; what has no line was refused to this page, as soon as it was said.
  refused({ line }) {
    const open = [...this.said.values()].filter((it) => !it.isBack && it.stream);
    const it = line === undefined ? open.at(-1) : open[0];
    if (it) this.back(it);
  }

  person(text, by, isOnItsWay) {
    this.closeText();
    if (!this.isNamed && text.trim()) this.name(text);
    this.isNamed = true;
    const kind = `turn person${isOnItsWay ? " sent" : ""}`;
    const node = el("div", { class: kind }, el("div", { class: "who" }, by ?? "You"), el("div", { class: "words" }, text));
    this.put(node);
    return node;
  }

  write(text) {
    if (!this.text) {
      // It is drawn anew with each piece, and is read out once, when it is whole.
      const words = el("div", { class: "words", "aria-live": "off" });
      this.put(el("div", { class: "turn agent", "aria-live": "off" }, el("div", { class: "who" }, "Agent"), words));
      this.text = { words, rest: "", last: null, due: null };
    }
    const it = this.text;
    it.rest += text;
    it.due ??= setTimeout(() => this.draw(it), it.rest.length > 20000 ? 1000 : 80);
  }

  // What follows changes the last block at most: the others are not drawn again.
  draw(it) {
    clearTimeout(it.due);
    const { blocks, rest } = markdown(it.rest);
    it.last?.remove();
    fill(it.words, blocks);
    Object.assign(it, { rest, last: blocks.at(-1), due: null });
    this.put();
  }

  closeText() {
    if (this.text) this.draw(this.text);
    if (this.text) this.aloud(`Agent: ${this.text.words.textContent.slice(0, READ_MAX)}`);
    this.text = null;
  }

  // What was there already when somebody came is not read out.
  aloud(text) {
    if (!this.isPast) say(text);
  }

  call(id, tool, target) {
    this.closeText();
    const state = el("span", { class: "badge run" }, "runs");
    const body = el("div", { class: "body" });
    const [verb, what] = [el("span", {}), el("code", {})];
    const node = el("details", { class: "tool" }, el("summary", {}, state, verb, what), body);
    this.put(node);
    // The journal has the name that the model wrote.
    const card = { node, state, body, verb, what, tool: tool.replace("_", "."), output: null, isOver: false };
    this.calls.set(id, card);
    this.aim(card, target.startsWith("{") ? "" : target);
    return card;
  }

  // What a call is about, in words.
  aim(card, target) {
    const shown = target.startsWith(`${this.root}/`) ? target.slice(this.root.length + 1) : target;
    card.verb.textContent = plain(VERBS[card.tool] ?? card.tool);
    card.what.textContent = plain(shown.split("\n")[0].trim());
  }

  end(id, ok, summary, text, walls) {
    const card = this.calls.get(id);
    if (!card || card.isOver) return;
    card.isOver = true;
    card.state.className = `badge ${ok ? "ok" : "bad"}`;
    card.state.textContent = ok ? "done" : "failed";
    if (summary) fill(card.node.querySelector("summary"), el("span", { class: "dim" }, summary));
    card.output?.remove();
    const from = ok && EDITS.has(card.tool) ? text.indexOf("--- ") : -1;
    if (from >= 0) {
      // A change is seen at once, a long one behind its line.
      fill(card.body, diff(text.slice(from)));
      card.node.open = text.slice(from).split("\n").length <= DIFF_LINES;
    } else {
      fill(card.body, el("pre", { class: "code", tabindex: "0", role: "group", "aria-label": "Result" }, text));
      card.node.open = !ok;
    }
    if (walls) fill(card.body, el("details", { class: "dim" }, el("summary", {}, "The walls around it"), [...walls].join(", ").replaceAll("_", " ")));
  }

  note(text, kind = "dim") {
    this.closeText();
    this.put(el("p", { class: `note ${kind}` }, text));
  }

  // An entry of the journal, as part of the conversation.
  remember({ entry, payload }) {
    switch (entry.type) {
      case "accepted":
        if (this.said.has(entry.key) && entry.by?.channel === "page") home.known(entry.by.id);
        return this.heard(entry.key, this.person(payload, whoOf(entry.by)));
      case "reply": {
        const { text, calls = [] } = JSON.parse(payload || "{}");
        if (text) this.write(text);
        this.closeText();
        for (const call of calls) this.call(call.id, call.name, call.arguments);
        return undefined;
      }
      case "intent": {
        const card = this.calls.get(entry.call);
        if (card && entry.purpose !== "need") this.aim(card, entry.target);
        return undefined;
      }
      case "denied":
        return this.decided(entry.call, "denied", entry.reasons ?? [], entry.target);
      case "observation":
        return this.end(entry.call, entry.ok, null, payload);
      case "turn_ended":
        if (entry.reason !== "answered") this.note(`The turn ended: ${entry.reason}.`);
    }
    return undefined;
  }

  decided(id, verdict, reasons, target) {
    const card = this.calls.get(id);
    if (card && target) this.aim(card, target);
    if (!card || verdict === "allowed") return;
    card.state.textContent = verdict === "asked" ? "waits" : "runs";
    const kind = verdict === "denied" ? "bad" : "ask";
    fill(card.body, el("p", {}, el("span", { class: `badge ${kind}` }, verdict), ` ${reasons.join("; ")}`));
  }

  // Only a turn does that: there is one, also where its beginning is kept no more.
  works() {
    if (this.isWorking) return;
    this.isWorking = true;
    this.shown();
  }

  // Something that happens now.
  happens(event) {
    if (event.run !== undefined) this.after = { run: event.run, line: event.line };
    switch (event.type) {
      case "stream":
        this.stream = event.stream;
        this.opened.resolve();
        this.failures = 0;
        this.lost?.remove();
        this.lost = null;
        // Whatever else comes: what no connection was told yet needs not wait for that.
        if ([...this.said.values()].every((it) => it.isBack || !it.stream)) this.sayAgain();
        return;
      case "session":
        Object.assign(this, { model: event.model, project: event.workspace, root: event.workspace });
        this.tellStatus();
        if (event.backend) this.note(`The walls around the agent here: ${event.backend}.`, "trouble");
        return;
      case "said": {
        // What was said here is told to who comes back, too: it stands where it was heard.
        const mine = [...this.said.values()].find((it) => !it.isSaid && it.text === event.text);
        const isOnItsWay = mine && !mine.isBack;
        if (isOnItsWay) mine.node.remove();
        const node = this.person(event.text, mine ? null : whoTold(event.by), isOnItsWay);
        if (mine) Object.assign(mine, { node, isSaid: true, by: PAGE.exec(event.by)?.[1] });
        return;
      }
      case "accepted":
        this.isWorking = true;
        this.heard(event.key);
        break;
      case "repeated":
        this.heard(event.key);
        return;
      case "going_on":
        this.isWorking = true;
        break;
      case "text":
        this.works();
        this.write(event.text);
        return;
      case "call":
        this.outdate("apply");
        this.isWorking = true;
        // The journal may have told of it a moment ago.
        if (this.calls.get(event.call)?.isOver ?? true) this.call(event.call, event.tool, event.target);
        break;
      case "decided":
        this.decided(event.call, event.verdict, event.reasons, event.target);
        return;
      case "usage": {
        const { currency, nanos } = event.cost ?? {};
        if (currency) this.uses(currency, nanos);
        this.uses("tokens", BigInt(event.usage.input_tokens) + BigInt(event.usage.output_tokens));
        this.context = event.context ?? this.context;
        this.tellStatus();
        return;
      }
      case "sent": {
        const { file, text } = event;
        const bytes = file && Uint8Array.from(atob(file.bytes), (c) => c.charCodeAt(0));
        const link = file && el("a", { href: URL.createObjectURL(new Blob([bytes])), download: file.name }, file.name);
        this.closeText();
        this.put(el("p", { class: "note" }, event.to ? `To ${event.to}: ` : "From the agent: ", text, " ", link));
        return;
      }
      case "changed":
        this.waiting = event;
        this.tellStatus();
        return;
      case "output": {
        this.works();
        const card = this.calls.get(event.call);
        if (!card) return;
        card.output ??= fill(card.body, el("pre", { class: "code" })).lastChild;
        card.output.textContent = (card.output.textContent + plain(event.text)).slice(-OUTPUT_MAX);
        this.put();
        return;
      }
      case "result":
        // Also of what was let happen late, without a turn.
        this.outdate("apply");
        this.end(event.call, event.ok, `${event.summary} · ${event.duration_ms} ms`, event.text, event.enforced?.walls);
        return;
      case "ask":
        this.ask(event);
        break;
      case "answered":
        this.asks.get(event.id)?.answered(event.answer, event.why);
        break;
      case "diff":
        this.changes(event);
        return;
      case "merged":
        this.note(`${MERGED[event.direction] ?? event.direction}: ${event.files.join(", ") || "nothing"}`);
        this.outdate("apply", event.direction === "apply" ? "The changes were applied." : undefined);
        this.outdate("undo");
        if (event.direction === "apply" && event.files.length) {
          this.put(this.offered("undo", worker("Take it back", () => this.op({ op: "undo" }))));
        }
        event.commits?.forEach((it) => this.note(it));
        event.conflicts.forEach((it) => this.note(it, "trouble"));
        event.stays?.forEach((it) => this.note(`Stays in the session: ${it}`, "trouble"));
        return;
      case "failed":
        this.note(event.error, "trouble");
        if (event.op === "say") this.refused(event);
        return;
      case "unseen":
      case "notice":
        this.note(event.text);
        return;
      case "guide":
        this.note(`${event.path}: ${event.state}`);
        return;
      case "end":
        this.closeText();
        this.isWorking = false;
        if (event.error) this.note(event.error, "trouble");
        else if (event.reason !== "answered") this.note(`The turn ended: ${event.reason}.`);
        this.aloud(event.reason === "answered" ? "The agent has answered." : `The turn ended: ${event.reason}.`);
        if (!this.isPast) this.price();
        if (!this.isPast && (event.took_ms ?? 0) > LONG) home.notify("The agent is done", this.title.textContent, `#/chat/${this.id}`);
        break;
      default:
        return;
    }
    this.shown();
  }

  ask({ id, card }) {
    this.closeText();
    const ask = new Ask(card, async (answer, why) => {
      await this.op({ op: "answer", id, answer, why });
    });
    this.asks.set(id, ask);
    this.put(ask.node);
    say(`A question: ${card.title}`);
    if (!this.isPast) home.notify("A question waits for you", card.title, `#/chat/${this.id}`);
  }

  changes({ diff: text, files, red, reasons, commits = [], conflicts = [], stays = [], shown }) {
    this.closeText();
    if (files.length + commits.length === 0) return this.note("This session has no changes.");
    // What is shown already, and still offered, is not shown twice: it comes to where the newest stands.
    if (shown && this.seen?.shown === shown && this.offers.apply) {
      const { activeElement } = document;
      this.put(this.seen.node);
      if (this.seen.node.contains(activeElement)) activeElement.focus();
      return undefined;
    }
    const card = el(
      "section",
      { class: "card", role: "group", "aria-label": "Changes of this session" },
      el("h2", {}, counted(files, "file")),
      red.length ? el("p", { class: "trouble" }, `Asked about one by one: ${red.join(", ")}`) : null,
      reasons.map((reason) => el("p", { class: "dim" }, reason)),
      commits.map((it) => el("p", {}, it)),
      conflicts.map((it) => el("p", { class: "trouble" }, it)),
      stays.map((it) => el("p", { class: "trouble" }, `Stays in the session: ${it}`)),
      diff(text),
      this.offered("apply", [
        worker("Apply to the project", () => this.op({ op: "apply", shown }), "strong"),
        twice("Discard", () => this.op({ op: "discard", shown }), "danger"),
      ]),
    );
    this.seen = { shown, node: card };
    return this.put(card);
  }

  // What can be done about what is shown, as long as nothing else is there: whoever presses it means what they see.
  offered(kind, what) {
    this.outdate(kind);
    this.offers[kind] = el("div", { class: "tools" }, what);
    return this.offers[kind];
  }

  outdate(kind, says = OUTDATED[kind]) {
    const offer = this.offers[kind];
    if (!offer) return;
    const { activeElement } = document;
    // What was pressed is disabled meanwhile, and may have given the focus away.
    const hadFocus = offer.contains(activeElement) || (activeElement === document.body && offer.querySelector(":disabled"));
    const why = el("span", { class: "dim", tabindex: "-1" }, says);
    offer.replaceChildren(why);
    if (hadFocus) why.focus();
    this.offers[kind] = null;
  }
}

const MERGED = { apply: "Applied to the project", undo: "Taken back", discard: "Discarded" };

// Why something is offered no more.
const OUTDATED = {
  apply: "The session has changed since then. “Changes” shows its state now.",
  undo: "Something was applied or taken back since then.",
};

const counted = (all, what) => `${all.length} ${what}${all.length === 1 ? "" : "s"} changed`;

const FIELD = ({ name, value }) => [el("dt", {}, name), el("dd", {}, el("code", {}, value))];

const origins = (all) => all.map((it) => el("p", { class: "dim" }, el("code", {}, it.value), ` ${it.words}`));

// A short card's first lines of a diff; all of it stands in the details.
function beginning(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  const more = lines.length - DIFF_LINES;
  if (more <= 1) return diff(text);
  return [diff(lines.slice(0, DIFF_LINES).join("\n")), el("p", { class: "dim" }, `… ${more} more lines in the details`)];
}

// A question to a human: what exactly would be done, why it is asked, and where its values came from.
export class Ask {
  constructor(card, answer) {
    // Whether it is answered, whether that was here, and whether an answer is on its way.
    Object.assign(this, { over: false, isHere: false, isBusy: false });
    const why = el("input", { type: "text", required: card.reasoned, autocomplete: "off" });
    const give = (text, said, kind) =>
      button(
        text,
        async () => {
          if (card.reasoned && !why.reportValidity()) return;
          const pressed = document.activeElement;
          Object.assign(this, { isHere: true, isBusy: true });
          this.buttons.forEach((it) => (it.disabled = true));
          try {
            await answer(said, why.value);
          } finally {
            this.isBusy = false;
            if (!this.over) this.buttons.forEach((it) => (it.disabled = false));
            this.keepFocus(this.over ? this.outcome : pressed);
          }
        },
        kind,
      );
    this.buttons = [
      give("Yes, this once", "yes", "strong"),
      card.once ? null : give("Yes, for this session", "yes_for_session"),
      card.pattern ? give("Yes, for the pattern", "yes_for_pattern") : null,
      give("No", "no", "danger"),
    ].filter(Boolean);
    const fields = card.parts.filter((part) => part.part === "field");
    const brief = fields.filter((part) => part.brief);
    const diffs = card.parts.filter((part) => part.part === "diff");
    const isLong = diffs.some((part) => part.diff.split("\n").length > DIFF_LINES);
    const [reason, ...others] = card.reasons;
    // Words of the person or of the model itself are the usual case.
    const isForeign = ({ kind }) => !["person", "model"].includes(kind);
    const [foreign, usual] = [true, false].map((is) => (card.origins ?? []).filter((it) => isForeign(it) === is));
    const isFull = brief.length < fields.length || isLong || others.length + usual.length > 0;
    this.outcome = el("p", { class: "outcome", role: "status", tabindex: "-1" });
    this.node = el(
      "section",
      { class: "card asks", role: "group", "aria-label": `Question: ${plain(card.title)}` },
      el("h2", {}, card.title),
      brief.length ? el("dl", {}, brief.map(FIELD)) : null,
      diffs.map((part) => [el("h3", {}, part.path), beginning(part.diff)]),
      origins(foreign),
      card.caveats.map((caveat) => el("p", { class: "trouble" }, caveat)),
      reason && el("p", { class: "dim" }, `Why: ${reason}`),
      card.pattern && !card.once ? el("p", { class: "dim" }, `The pattern: ${card.pattern}`) : null,
      isFull &&
        el(
          "details",
          {},
          el("summary", {}, "Details"),
          others.map((other) => el("p", { class: "dim" }, `Why: ${other}`)),
          fields.length ? el("dl", {}, fields.map(FIELD)) : null,
          isLong && diffs.map((part) => [el("h3", {}, part.path), diff(part.diff)]),
          origins(usual),
        ),
      field(card.reasoned ? "Why (needed)" : "Why (the agent is told)", why),
      el("div", { class: "tools" }, this.buttons),
      this.outcome,
    );
  }

  answered(answer, why) {
    this.over = true;
    this.buttons.forEach((it) => (it.disabled = true));
    this.node.classList.add("over");
    this.outcome.replaceChildren(plain(`Answered: ${answer.replaceAll("_", " ")}${why ? ` (${why})` : ""}`));
    this.keepFocus(this.outcome);
  }

  // What had the focus here takes none any more: whoever answered goes on where they were, unless they went elsewhere meanwhile.
  keepFocus(node) {
    const { activeElement } = document;
    if (this.isHere && (activeElement === document.body || this.node.contains(activeElement))) node.focus();
  }
}
