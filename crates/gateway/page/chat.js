// A conversation: what was said and done before, from the journal, and what happens now, from the session's events.

import { button, diff, el, field, fill, plain, say, short, time, trouble } from "./dom.js";
import * as home from "./home.js";
import { markdown } from "./markdown.js";

// How much of a command's output is shown while it runs, in characters.
const OUTPUT_MAX = 64 << 10;
// How long a first burst of events may pause, and a lost connection is left alone, in milliseconds.
const QUIET = 150;
const PAUSE_MIN = 500;
const PAUSE_MAX = 15000;

const wait = (time, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, time);
    signal?.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });

// The conversations there are, and the beginning of another.
export async function chats(view, signal) {
  fill(view, el("h1", {}, "Conversations"));
  const [sessions, status, models] = await Promise.all([
    home.list("/api/sessions", { signal }),
    home.list("/api/status", { signal }),
    home.list("/api/models", { signal }),
  ]);
  const running = new Map((status[0]?.sessions ?? []).map((it) => [it.session, it]));
  const places = [...new Set(sessions.map((it) => it.workspace))];
  const where = el("input", { required: true, list: "places", placeholder: "/home/me/project", value: places[0] });
  const model = el("input", { list: "models", placeholder: models[0]?.uses?.[0]?.model ?? "PROVIDER/NAME" });
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
          const body = { directory: where.value.trim(), model: model.value.trim() || null };
          location.hash = `#/chat/${await home.post("/api/sessions", body)}`;
        } catch (error) {
          start.disabled = false;
          fill(form, trouble(error));
        }
      },
    },
    el("h2", {}, "A new one"),
    field("Project, on the machine that Bailey runs on", where),
    el("datalist", { id: "places" }, places.map((value) => el("option", { value }))),
    field("Model; empty: the configured one", model),
    el("button", { type: "submit", class: "strong" }, "Begin"),
  );
  const line = (it) => {
    const now = running.get(it.id);
    const doing = now && (now.questions ? "waits for you" : now.working ? "works" : "open");
    return el(
      "li",
      {},
      el("a", { href: `#/chat/${it.id}` }, it.title || "(nothing was said)"),
      doing ? el("span", { class: `badge ${now.questions ? "ask" : now.working ? "run" : ""}` }, doing) : null,
      el("span", { class: "dim" }, `${it.workspace} · ${short(it.id)} · `, time(it.updated)),
    );
  };
  const list = sessions.length
    ? el("ul", { class: "list" }, sessions.slice(0, 200).map(line))
    : el("p", { class: "none" }, "There are none yet. Begin one below.");
  fill(view, list, form);
}

export async function chat(view, signal, id) {
  const conversation = new Conversation(id, signal);
  fill(view, conversation.parts());
  conversation.follow().catch((error) => signal.aborted || fill(view, trouble(error)));
}

class Conversation {
  constructor(id, signal) {
    Object.assign(this, { id, signal, stream: null, after: null, isWorking: false, isSpeaking: false, said: new Set() });
    this.opened = Promise.withResolvers();
    this.log = el("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: "0" });
    this.title = el("h1", {}, `Conversation ${short(id)}`);
    this.state = el("span", { class: "badge" }, "connects");
    this.stop = button("Stop", () => this.op({ op: "cancel" }), "danger");
    this.stop.hidden = true;
    this.words = el("textarea", { rows: "3", "aria-label": "What to say", placeholder: "Say something" });
    this.words.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.speak();
      }
    });
    this.clear();
  }

  parts() {
    const tools = el(
      "div",
      { class: "tools" },
      this.state,
      this.stop,
      button("Changes", () => this.op({ op: "changes" })),
      el("a", { class: "button", href: `#/sessions/${this.id}` }, "Timeline"),
    );
    const form = el(
      "form",
      { class: "composer", onsubmit: (event) => (event.preventDefault(), this.speak()) },
      this.words,
      el("button", { type: "submit", class: "strong" }, "Send"),
    );
    return [el("div", { class: "bar" }, this.title, tools), this.log, form];
  }

  clear() {
    Object.assign(this, { calls: new Map(), asks: new Map(), text: null });
    this.log.replaceChildren();
  }

  // Hears the session until the view is left; after a loss it goes on behind the last line that came.
  async follow() {
    let pause = PAUSE_MIN;
    while (!this.signal.aborted) {
      try {
        const { run, line } = this.after ?? {};
        const query = run ? `?run=${run}&line=${line}` : "";
        await this.hear(home.lines(`/api/sessions/${this.id}/events${query}`, { signal: this.signal }));
        pause = PAUSE_MIN;
      } catch (error) {
        if (this.signal.aborted || error.status === 401) return;
        // It cannot be opened: what was said is shown all the same.
        if (error.status > 0 && error.status !== 503) return this.closed(error);
      }
      if (this.stream) this.opened = Promise.withResolvers();
      this.stream = null;
      this.is("reconnects", "trouble");
      await wait(pause, this.signal);
      pause = Math.min(pause * 2, PAUSE_MAX);
    }
  }

  async closed(error) {
    if (!this.after) await this.recall(Infinity);
    // Whoever waits to say something is told so.
    this.opened.resolve();
    this.is("closed", "trouble");
    this.stop.hidden = true;
    fill(this.log, trouble(error), button("Try again", () => window.dispatchEvent(new Event("hashchange"))));
    this.log.scrollTop = this.log.scrollHeight;
  }

  // What the journal has, up to an entry.
  async recall(newest) {
    const past = await home.list(`/api/sessions/${this.id}`, { signal: this.signal });
    this.clear();
    past.filter(({ entry }) => Number(entry.seq) <= newest).forEach((it) => this.remember(it));
    this.closeText();
    this.isWorking = false;
  }

  async hear(events) {
    // What is there already comes at once; whether it joins what is shown is seen by its first line.
    const burst = [];
    let next = events.next();
    for (;;) {
      const came = await (burst.length ? Promise.race([next, wait(QUIET)]) : next);
      if (!came || came.done) break;
      burst.push(came.value);
      next = events.next();
    }
    // Its end is heard below.
    next.catch(() => {});
    await this.begin(burst);
    for (;;) {
      const { done, value } = await next;
      if (done) return;
      this.happens(value);
      next = events.next();
    }
  }

  async begin(burst) {
    const lines = burst.filter((event) => event.line !== undefined && event.type !== "session");
    const { run, line } = this.after ?? {};
    const joins = this.after && burst.every((event) => event.run === undefined || event.run === run);
    if (!joins || (lines.length && lines[0].line !== line + 1)) {
      // The events go on from there.
      await this.recall(lines.length ? Number(lines[0].seq) : Infinity);
    }
    burst.forEach((event) => this.happens(event));
    this.shown();
  }

  is(text, kind = "") {
    this.state.className = `badge ${kind}`;
    this.state.textContent = text;
  }

  // Says how it is, and shows the newest unless the person looks at what was before.
  shown() {
    const waits = [...this.asks.values()].some((ask) => !ask.over);
    if (waits) this.is("waits for you", "ask");
    else this.is(this.isWorking ? "works" : "at rest", this.isWorking ? "run" : "");
    this.stop.hidden = !this.isWorking;
  }

  put(node) {
    const { scrollTop, scrollHeight, clientHeight } = this.log;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < 80;
    if (node) this.log.append(node);
    if (isAtEnd) this.log.scrollTop = this.log.scrollHeight;
  }

  async op(op) {
    try {
      if (!this.stream) throw new Error("There is no connection to the session just now.");
      await home.post(`/api/streams/${this.stream}`, op);
      return true;
    } catch (error) {
      this.put(trouble(error));
      return false;
    }
  }

  async speak() {
    if (this.isSpeaking || !this.words.value.trim()) return;
    // Whoever is faster than the connection is heard when it is there; until then the words can still be changed.
    this.isSpeaking = true;
    await this.opened.promise;
    this.isSpeaking = false;
    const text = this.words.value.trim();
    if (!text) return;
    const shown = this.person(text, null, true);
    this.said.add(shown);
    // A name, so that saying it again by mistake says it once.
    if (await this.op({ op: "say", text, key: `page:${crypto.randomUUID()}` })) this.words.value = "";
    else {
      this.said.delete(shown);
      shown.remove();
    }
    this.log.scrollTop = this.log.scrollHeight;
  }

  person(text, by, isOnItsWay) {
    this.closeText();
    const kind = `turn person${isOnItsWay ? " sent" : ""}`;
    const node = el("div", { class: kind }, el("div", { class: "who" }, by ?? "You"), el("div", { class: "words" }, text));
    this.put(node);
    return node;
  }

  write(text) {
    if (!this.text) {
      const words = el("div", { class: "words" });
      this.put(el("div", { class: "turn agent" }, el("div", { class: "who" }, "Agent"), words));
      this.text = { words, all: "", due: null };
    }
    const it = this.text;
    it.all += text;
    it.due ??= setTimeout(() => this.draw(it), it.all.length > 20000 ? 1000 : 80);
  }

  draw(it) {
    clearTimeout(it.due);
    it.due = null;
    it.words.replaceChildren(...markdown(it.all));
    this.put();
  }

  closeText() {
    if (this.text) this.draw(this.text);
    this.text = null;
  }

  call(id, tool, target) {
    this.closeText();
    const state = el("span", { class: "badge run" }, "runs");
    const body = el("div", { class: "body" });
    const node = el("details", { class: "tool" }, el("summary", {}, state, el("code", {}, `${tool} ${target}`)), body);
    this.put(node);
    const card = { node, state, body, output: null };
    this.calls.set(id, card);
    return card;
  }

  end(id, ok, summary, text, walls) {
    const card = this.calls.get(id);
    if (!card) return;
    card.state.className = `badge ${ok ? "ok" : "bad"}`;
    card.state.textContent = ok ? "done" : "failed";
    if (summary) fill(card.node.querySelector("summary"), el("span", { class: "dim" }, summary));
    card.output?.remove();
    fill(card.body, el("pre", { class: "code", tabindex: "0", role: "region", "aria-label": "Result" }, text));
    if (walls) fill(card.body, el("p", { class: "dim" }, `Behind: ${[...walls].join(", ").replaceAll("_", " ")}`));
  }

  note(text, kind = "dim") {
    this.closeText();
    this.put(el("p", { class: `note ${kind}` }, text));
  }

  // An entry of the journal, as part of the conversation.
  remember({ entry, payload }) {
    switch (entry.type) {
      case "accepted":
        return void this.person(payload, entry.by ? `${entry.by.name} (${entry.by.channel})` : null);
      case "reply": {
        const { text, calls = [] } = JSON.parse(payload || "{}");
        if (text) this.write(text);
        this.closeText();
        for (const call of calls) this.call(call.id, call.name, call.arguments);
        return undefined;
      }
      case "denied":
        return this.decided(entry.call, "denied", entry.reasons ?? []);
      case "observation":
        return this.end(entry.call, entry.ok, null, payload);
      case "turn_ended":
        if (entry.reason !== "answered") this.note(`The turn ended: ${entry.reason}.`);
    }
    return undefined;
  }

  decided(id, verdict, reasons) {
    const card = this.calls.get(id);
    if (!card || verdict === "allowed") return;
    card.state.textContent = verdict === "asked" ? "waits" : "runs";
    const kind = verdict === "denied" ? "bad" : "ask";
    fill(card.body, el("p", {}, el("span", { class: `badge ${kind}` }, verdict), ` ${reasons.join("; ")}`));
  }

  // Something that happens now.
  happens(event) {
    if (event.run !== undefined) this.after = { run: event.run, line: event.line };
    switch (event.type) {
      case "stream":
        this.stream = event.stream;
        this.opened.resolve();
        return;
      case "session":
        this.title.textContent = `${plain(event.workspace)} · ${plain(event.model)}`;
        if (event.backend) this.note(`What stands around the agent here: ${event.backend}.`, "trouble");
        return;
      case "said": {
        const mine = [...this.said].find((node) => node.querySelector(".words").textContent === plain(event.text));
        if (mine) this.said.delete(mine);
        else this.person(event.text, event.by);
        return;
      }
      case "accepted":
        this.isWorking = true;
        for (const node of this.log.querySelectorAll(".sent")) node.classList.remove("sent");
        this.said.clear();
        break;
      case "going_on":
        this.isWorking = true;
        break;
      case "text":
        this.write(event.text);
        return;
      case "call":
        this.isWorking = true;
        this.call(event.call, event.tool, event.target);
        break;
      case "decided":
        this.decided(event.call, event.verdict, event.reasons);
        return;
      case "output": {
        const card = this.calls.get(event.call);
        if (!card) return;
        card.output ??= fill(card.body, el("pre", { class: "code" })).lastChild;
        card.output.textContent = (card.output.textContent + plain(event.text)).slice(-OUTPUT_MAX);
        this.put();
        return;
      }
      case "result":
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
        this.note(`${event.direction}: ${event.files.join(", ") || "nothing"}`);
        event.conflicts.forEach((it) => this.note(it, "trouble"));
        return;
      case "failed":
        this.note(event.error, "trouble");
        for (const node of this.said) node.remove();
        this.said.clear();
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
        say(event.reason === "answered" ? "The agent has answered." : `The turn ended: ${event.reason}.`);
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
  }

  changes({ diff: text, files, red, reasons }) {
    this.closeText();
    if (files.length === 0) return this.note("Nothing in the project is changed.");
    const apply = button("Apply to the project", () => this.op({ op: "apply" }), "strong");
    const undo = button("Take the last apply back", () => this.op({ op: "undo" }));
    const card = el(
      "section",
      { class: "card", "aria-label": "Changes of this session" },
      el("h2", {}, `${files.length} changed`),
      red.length ? el("p", { class: "trouble" }, `Asked about one by one: ${red.join(", ")}`) : null,
      reasons.map((reason) => el("p", { class: "dim" }, reason)),
      diff(text),
      el("div", { class: "tools" }, apply, undo),
    );
    return this.put(card);
  }
}

const PARTS = {
  field: ({ name, value }) => [el("dt", {}, name), el("dd", {}, el("code", {}, value))],
};

// A question to a human: what exactly would be done, why it is asked, and where its values came from.
export class Ask {
  constructor(card, answer) {
    this.over = false;
    const why = el("input", { type: "text", required: card.reasoned, autocomplete: "off" });
    const give = (text, said, kind) =>
      button(
        text,
        async () => {
          if (card.reasoned && !why.reportValidity()) return;
          this.buttons.forEach((it) => (it.disabled = true));
          try {
            await answer(said, why.value);
          } finally {
            if (!this.over) this.buttons.forEach((it) => (it.disabled = false));
          }
        },
        kind,
      );
    this.buttons = [
      give("Yes, this once", "yes", "strong"),
      card.once ? null : give("Yes, for this session", "yes_for_session"),
      card.pattern ? give(`Yes, for ${card.pattern}`, "yes_for_pattern") : null,
      give("No", "no", "danger"),
    ].filter(Boolean);
    const fields = card.parts.filter((part) => part.part === "field");
    this.outcome = el("p", { role: "status" });
    this.node = el(
      "section",
      { class: "card asks", "aria-label": `Question: ${plain(card.title)}` },
      el("h2", {}, card.title),
      card.reasons.map((reason) => el("p", { class: "dim" }, reason)),
      fields.length ? el("dl", {}, fields.map(PARTS.field)) : null,
      card.parts.filter((part) => part.part === "diff").map((part) => [el("h3", {}, part.path), diff(part.diff)]),
      (card.origins ?? []).map((it) => el("p", { class: "dim" }, el("code", {}, it.value), ` ${it.words}`)),
      card.caveats.map((caveat) => el("p", { class: "trouble" }, caveat)),
      field(card.reasoned ? "Why (needed)" : "Why (the agent is told)", why),
      el("div", { class: "tools" }, this.buttons),
      this.outcome,
    );
  }

  answered(answer, why) {
    this.over = true;
    this.buttons.forEach((it) => (it.disabled = true));
    this.node.classList.add("over");
    fill(this.outcome, `Answered: ${answer.replaceAll("_", " ")}${why ? ` (${why})` : ""}`);
  }
}
