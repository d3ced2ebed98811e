// All that is not a conversation: what waits, what was done, what is allowed, what is set.

import { button, diff, el, field, fill, money, picker, plain, say, short, table, time, trouble, twice, used, watch, worker } from "./dom.js";
import { Ask, modelPicker, projectsOf, stateOf, whoOf, whoTold } from "./chat.js";
import * as home from "./home.js";

const title = (view, text, ...more) => fill(view, el("div", { class: "bar" }, el("h1", {}, text), more));

// A place for what came of something that was asked for.
function outcome() {
  const node = el("div", { class: "outcome", role: "status" });
  return {
    node,
    // What came, where all went well. What came before an error is shown by `before`.
    async of(work, done, before = () => null) {
      node.replaceChildren(el("p", { class: "dim" }, "One moment…"));
      try {
        const came = await work();
        node.replaceChildren();
        fill(node, done(came) ?? el("p", {}, "Done."));
        return came;
      } catch (error) {
        node.replaceChildren();
        fill(node, before(error.lines ?? []), trouble(error));
        return null;
      }
    },
  };
}

// How often what others may change is looked at, in milliseconds.
const LOOK = 5000;

// Shows the view anew, where it was not left meanwhile.
const again = (signal) => signal.aborted || window.dispatchEvent(new Event("hashchange"));

// With what exit code a command ended whose lines are an answer all the same.
const codeOf = (lines) => lines.find((line) => line.type === "ended")?.code;

export async function approvals(view, signal) {
  title(view, "Approvals");
  const none = el("p", { class: "none" }, "No question waits for you.");
  // The questions that are shown, and where each is answered.
  const shown = new Map();
  const show = (question) => {
    const { id, session, card, target, standing } = question;
    const about = el("p", { class: "dim" }, el("a", { href: `#/chat/${session}` }, `Session ${short(session)}`), ` · ${standing}`);
    if (!card || standing !== "open") {
      const node = el("section", { class: "card" }, el("h2", {}, card?.title ?? target), about);
      return shown.set(id, { standing, node });
    }
    // What lasts longer than once is answered in the conversation itself.
    const ask = new Ask({ ...card, once: true, pattern: null }, async (answer, why) => {
      try {
        await home.act({ act: answer === "no" ? "reject" : "approve", id, reason: why });
        ask.answered(answer, why);
      } catch (error) {
        fill(ask.outcome, trouble(error));
      }
    });
    ask.node.prepend(about);
    return shown.set(id, { standing, node: ask.node, ask });
  };
  const look = async () => {
    const questions = await home.list("/api/approvals", { signal });
    const standing = new Map(questions.map((it) => [it.id, it.standing]));
    for (const [id, { ask, node, ...it }] of shown) {
      if (standing.get(id) === it.standing || ask?.over || ask?.isBusy) continue;
      // What was a question stays in sight, for somebody may be reading it.
      if (ask) ask.answered(standing.get(id) ?? "elsewhere");
      else node.remove();
      if (!ask) shown.delete(id);
    }
    for (const question of questions.filter((it) => !shown.has(it.id))) {
      show(question);
      fill(view, shown.get(question.id).node);
    }
    if (shown.size) none.remove();
    else fill(view, none);
  };
  await look();
  watch(look, LOOK, signal);
}

const WHAT = {
  accepted: (entry, payload) => [`${whoOf(entry.by) ?? "You"} said`, payload],
  reply: (entry, payload) => [`${entry.provider}/${entry.model} answered`, replied(payload)],
  intent: (entry) => [`${entry.admitted}: ${entry.kind}`, `${entry.target}\n${(entry.reasons ?? []).join("\n")}`],
  outcome: (entry) => [`it ended: ${entry.status}`, entry.reason ?? ""],
  denied: (entry) => [`refused: ${entry.kind}`, `${entry.target}\n${(entry.reasons ?? []).join("\n")}`],
  observation: (entry, payload) => [`${toolOf(entry.tool)} told the agent`, payload],
  asked: (entry) => ["a human is asked", entry.target ?? ""],
  answered: (entry) => [entry.by === "bailey" ? "the question ran out" : `a human said ${entry.answer ?? ""}`, entry.why ?? ""],
  session_opened: (entry) => ["the session began", entry.workspace ?? ""],
  guide: (entry) => ["the agent was told", entry.path],
  turn_ended: (entry) => ["the turn ended", entry.reason],
};

const GROUPS = {
  read: (entry) => ["guide", "observation"].includes(entry.type) || (entry.type === "intent" && ["read", "stat", "list", "search"].includes(entry.kind)),
  decided: (entry) => ["intent", "denied", "asked", "answered"].includes(entry.type),
  refused: (entry) => entry.type === "denied",
  left: (entry) => entry.type === "intent" && ["model", "http"].includes(entry.kind),
};

// A tool by the name that people know; a model may write no dot.
const toolOf = (name) => name.replace("_", ".");

// What a tool is called with, as lines and not as JSON; what is none stays as the model wrote it.
function argumentsOf(text) {
  try {
    return valued(JSON.parse(text));
  } catch {
    return text;
  }
}

function replied(payload) {
  const { text = "", calls = [] } = JSON.parse(payload || "{}");
  return [text, ...calls.map((call) => `${toolOf(call.name)} ${argumentsOf(call.arguments)}`)].filter(Boolean).join("\n");
}

const oneLine = (text) => {
  const [line] = text.trim().split("\n");
  return line.length > 90 ? `${line.slice(0, 90)}…` : line;
};

function origin(entry) {
  const { integrity, secrecy, sources = [] } = entry.labels ?? {};
  if (!integrity) return null;
  const from = sources.length ? `, from entries ${sources.join(", ")}` : "";
  return el("p", { class: "dim" }, `${integrity}, ${secrecy}${from}`);
}

export async function sessions(view, signal, id) {
  if (id) return timeline(view, signal, id);
  title(view, "Sessions");
  const all = await home.list("/api/sessions", { signal });
  const row = (it) => [
    el("a", { href: `#/sessions/${it.id}` }, it.title || short(it.id)),
    stateOf(it),
    it.workspace,
    it.model,
    used(it.spent),
    time(it.updated),
  ];
  return fill(view, table("All sessions", ["What", "State", "Project", "Model", "Used", "Last"], all.map(row), "There are none."));
}

async function timeline(view, signal, id) {
  const open = el("a", { class: "button", href: `#/chat/${id}` }, "Conversation");
  title(view, `Timeline of ${short(id)}`, open);
  const entries = await home.list(`/api/sessions/${id}`, { signal });
  const first = entries.find(({ entry }) => entry.type === "accepted")?.payload?.trim();
  if (first) view.querySelector("h1").textContent = plain(`Timeline of “${oneLine(first)}”`);
  const list = el("ol", { class: "timeline" });
  // What an outcome is the outcome of.
  const targets = new Map(entries.filter(({ entry }) => entry.type === "intent").map(({ entry }) => [entry.effect, entry.target]));
  const draw = (group) => {
    const wanted = entries.filter(({ entry }) => !group || GROUPS[group](entry));
    list.replaceChildren(
      ...wanted.map(({ entry, payload }) => {
        const [what, more] = WHAT[entry.type]?.(entry, payload) ?? [entry.type.replaceAll("_", " "), ""];
        const kind = entry.type === "denied" ? "bad" : entry.type === "asked" ? "ask" : "";
        const about = oneLine(entry.target ?? targets.get(entry.effect) ?? more);
        const head = [el("span", { class: `badge ${kind}` }, entry.seq), ` ${what} `, el("code", {}, about), " ", el("span", { class: "dim" }, time(entry.time))];
        if (!more) return el("li", {}, el("p", {}, head), origin(entry));
        const body = el("pre", { class: "code", tabindex: "0", role: "group", "aria-label": `Entry ${entry.seq}` }, more);
        return el("li", {}, el("details", {}, el("summary", {}, head), body, origin(entry)));
      }),
    );
    if (wanted.length === 0) list.replaceChildren(el("li", { class: "none" }, "Nothing of that."));
    say(`${wanted.length} entries`);
  };
  const choice = el(
    "select",
    { onchange: () => draw(choice.value) },
    el("option", { value: "" }, "everything"),
    Object.keys(GROUPS).map((value) => el("option", { value }, `what was ${value}`.replace("was left", "left this machine"))),
  );
  fill(view, field("Show", choice), list);
  draw("");
}

export async function permissions(view, signal) {
  title(view, "Permissions");
  const met = (matches) =>
    Object.entries(matches ?? {})
      .filter(([, value]) => value !== null && value?.length !== 0)
      .map(([key, value]) => `${key}: ${Array.isArray(value) ? value.join(", ") : value}`)
      .join("; ");
  const row = (rule) => [
    el("span", { class: `badge ${{ deny: "bad", review: "ask", allow: "ok" }[rule.answer] ?? ""}` }, rule.answer),
    rule.name,
    rule.text ?? "",
    el("code", {}, met(rule.matches)),
    rule.tier.replace("_", "-"),
  ];
  const inForce = el("div");
  const look = async () => {
    const rules = await home.list("/api/rules", { signal });
    inForce.replaceChildren(table("Rules in force", ["Answer", "Rule", "Why", "What it is about", "Whose"], rules.map(row), "There are none."));
  };
  await look();
  fill(view, inForce);

  const name = el("input", { required: true, placeholder: "mine.toml" });
  const text = el("textarea", { rows: "10", spellcheck: "false", required: true, placeholder: '[[rule]]\nname = "no-curl"\nanswer = "deny"\nmatch = { action = ["exec"], command = ["curl"] }' });
  const phrase = el("input", { autocomplete: "off" });
  const came = outcome();
  const shown = (lines) => {
    const row = (it) => [el("span", { class: `badge ${it.mark === "breaking" ? "bad" : "ask"}` }, it.mark ?? "changed"), it.entry, it.action, el("code", {}, it.target), `${it.was} → ${it.would}`];
    const changed = lines.filter((line) => line.was);
    const sum = lines.find((line) => line.judged !== undefined);
    return [
      lines.filter((line) => line.remark).map((line) => el("p", { class: "trouble" }, line.remark)),
      lines.filter((line) => line.diff).map((line) => [diff(line.diff), line.warnings.map((it) => el("p", { class: "trouble" }, it))]),
      sum && el("p", {}, `Of ${sum.judged} recorded decisions ${sum.changed} would change; ${sum.breaking} allowed actions would not be allowed.`),
      changed.length > 0 && table("Decisions that would change", ["Mark", "Entry", "What", "Of what", "Decision"], changed.map(row), ""),
      lines.some((line) => line.ok) && el("p", {}, el("span", { class: "badge ok" }, "in force")),
      codeOf(lines) && el("p", { class: "trouble" }, `The change is not in force (exit code ${codeOf(lines)}).`),
    ];
  };
  const body = (act) => ({ act, name: name.value.trim(), text: text.value });
  const update = (wanted) =>
    came.of(
      () => home.act({ ...wanted, confirm: phrase.value.trim() }, { codes: true }),
      (lines) => {
        // What it said stays: it may say what is in force no more.
        if (lines.some((line) => line.ok)) look().catch(() => {});
        return shown(lines);
      },
      shown,
    );
  const needed = (lines) => {
    const phrase = lines.find((line) => line.dry_run)?.confirm;
    return phrase && el("p", {}, "It needs the phrase: ", el("code", {}, phrase));
  };
  // Where something that was allowed would not be any more, what it is comes first, and a second press.
  const change = async () => {
    const wanted = body("update_rules");
    const anyway = worker("Change the rules anyway", () => update(wanted), "danger");
    const lines = await came.of(() => home.act(body("try_rules"), { codes: true }), shown, shown);
    const isBreaking = lines?.some((line) => line.breaking > 0);
    if (isBreaking) fill(came.node, needed(lines), el("div", { class: "tools anyway" }, anyway));
    else if (lines) await update(wanted);
  };
  const submit = el("button", { type: "submit", class: "strong" }, "Change the rules");
  const form = el(
    "form",
    {
      class: "begin",
      // What was looked at is another text then.
      oninput: ({ target }) => target !== phrase && form.querySelector(".anyway")?.remove(),
      onsubmit: async (event) => {
        event.preventDefault();
        submit.disabled = true;
        await change();
        submit.disabled = false;
      },
    },
    el("h2", {}, "Change a rule file"),
    el("p", { class: "dim" }, "The change is tried against recorded decisions. Built-in rules and the rules of your organisation stay as they are."),
    field("Name of the file", name),
    field("Its whole text", text),
    field("The phrase, where the change needs one", phrase),
    el(
      "div",
      { class: "tools" },
      worker("Show what would change", () =>
        form.reportValidity() &&
        came.of(
          () => home.act(body("try_rules"), { codes: true }),
          (lines) => {
            phrase.value = "";
            return [...shown(lines), needed(lines)];
          },
          shown,
        )),
      submit,
    ),
    came.node,
  );
  fill(view, form);
}

export async function audit(view, signal) {
  const verified = outcome();
  const found = (lines) => {
    const it = lines.find((line) => line.ok !== undefined);
    const isWhole = it?.ok && !codeOf(lines);
    return it && el("p", {}, el("span", { class: `badge ${isWhole ? "ok" : "bad"}` }, isWhole ? "whole" : "damaged"), ` ${it.entries} entries; root ${it.root}`);
  };
  const verify = worker("Verify the journal", () => verified.of(() => home.list("/api/verify", { signal, codes: true }), found, found), "strong");
  title(view, "Audit", verify);
  fill(view, verified.node);
  const entries = await home.list("/api/audit", { signal });
  const targets = new Map(entries.filter((it) => it.type === "intent").map((it) => [it.effect, it.target]));
  const said = (it) => (typeof it.by === "string" ? whoTold(it.by) : it.by?.name);
  const told = {
    session_opened: (it) => it.workspace,
    outcome: (it) => [[it.status, it.reason, it.exit ? `exit code ${it.exit}` : null].filter(Boolean).join(", "), targets.get(it.effect)].filter(Boolean).join(": "),
    reply: (it) => `${it.provider}/${it.model}`,
    answered: (it) => [it.answer?.replaceAll("_", " "), said(it) && `by ${said(it)}`, it.why && `(${it.why})`].filter(Boolean).join(" "),
    accepted: (it) => whoOf(it.by) ?? "",
    turn_ended: (it) => it.reason,
  };
  const row = ({ entry = {}, ...rest }) => {
    const it = entry.seq ? entry : rest;
    const what = told[it.type]?.(it) ?? it.target ?? it.tool ?? it.path ?? it.reason ?? "";
    const session = it.session ? el("a", { href: `#/sessions/${it.session}` }, short(it.session)) : "";
    return [it.seq, time(it.time), session, it.type?.replaceAll("_", " "), el("code", {}, what)];
  };
  fill(view, table("The newest entries", ["Entry", "When", "Session", "What", "Of what"], entries.reverse().map(row), "The journal is empty."));
}

const TIMES = [
  { value: "0 3 * * *", text: "each day at 03:00" },
  { value: "0 9 * * *", text: "each day at 09:00" },
  { value: "0 9 * * mon-fri", text: "Monday to Friday at 09:00" },
  { value: "0 9 * * mon", text: "each Monday at 09:00" },
  { value: "0 * * * *", text: "each hour" },
];

export async function schedules(view, signal) {
  title(view, "Schedules");
  const [all, sessions, trusted, status] = await Promise.all([
    home.list("/api/schedules", { signal }),
    // What can be chosen helps, and what cannot is written.
    ...["sessions", "trusted", "status"].map((name) => home.list(`/api/${name}`, { signal, codes: true }).catch(() => [])),
  ]);
  const came = outcome();
  const row = (it) => [
    it.name,
    el("code", {}, it.cron),
    time(it.next),
    it.task,
    it.may.length ? el("code", {}, it.may.join("; ")) : "what your rules allow",
    it.to ?? "this page",
    it.tokens ?? "",
    it.session ? el("span", {}, el("a", { href: `#/chat/${it.session}` }, short(it.session)), it.skipped ? ` (skipped while it ran: ${it.skipped})` : "") : "",
    el(
      "div",
      { class: "tools" },
      // Whoever went elsewhere meanwhile stays there.
      worker(`Run ${it.name} now`, () => came.of(() => home.act({ act: "run_schedule", name: it.name }), ([told]) => (signal.aborted || (location.hash = `#/chat/${told.session}`), null))),
      twice(`Remove ${it.name}`, () => came.of(() => home.act({ act: "remove_schedule", name: it.name }), () => (again(signal), null)), "danger"),
    ),
  ];
  fill(view, table("Schedules", ["Name", "When", "Next", "What", "May", "Results to", "Tokens at most", "Last session", "Do"], all.map(row), "There are none."), came.node);
  const [name, task] = ["nightly", "update the dependencies and make the tests pass"].map((placeholder) => el("input", { required: true, placeholder }));
  const when = picker("When, in the local time of the machine", TIMES, { other: "Another time…", placeholder: "0 3 * * * (minute, hour, day of the month, month, day of the week)", required: true });
  const projects = projectsOf(sessions, trusted).map((value) => ({ value }));
  const directory = picker("Project", projects, { other: "Another directory…", placeholder: "/home/me/project", required: true });
  const channels = (status[0]?.channels ?? []).map(({ name: value }) => ({ value }));
  const to = el("select", {}, el("option", { value: "" }, "nowhere else"), channels.map(({ value }) => el("option", { value }, `the owner, by ${value}`)));
  const tokens = el("input", { type: "number", min: "1" });
  const may = el("textarea", { rows: "3", spellcheck: "false", placeholder: "read,list,search\nchange:docs\nexec:cargo test" });
  const form = el(
    "form",
    {
      class: "begin",
      onsubmit: (event) => {
        event.preventDefault();
        const body = { act: "add_schedule", name: name.value, when: when.value, task: task.value, directory: directory.value, to: to.value || null, tokens: tokens.value ? Number(tokens.value) : null, may: may.value.split("\n").map((line) => line.trim()).filter(Boolean) };
        came.of(() => home.act(body), () => (again(signal), null));
      },
    },
    el("h2", {}, "New schedule"),
    field("Name", name),
    when.node,
    field("Task for the agent", task),
    directory.node,
    field("Send the results to", to),
    field("The only things that it may do, one per line; empty for everything that your rules allow or ask you about", may),
    field("Token limit of each run; empty for the limit of every session", tokens),
    el("button", { type: "submit", class: "strong" }, "Add"),
  );
  fill(view, form);
}

const amount = (unit, count) => (unit === "tokens" ? Number(count).toLocaleString() : money(count));

export async function budgets(view, signal) {
  title(view, "Budgets");
  const [it = { today: [], limits: [] }] = await home.list("/api/budget", { signal });
  const used = it.today.map((line) => [line.unit, amount(line.unit, line.used)]);
  const limits = it.limits.map((line) => [line.span, line.unit, amount(line.unit, line.limit)]);
  fill(
    view,
    table("Used up today", ["Of what", "How much"], used, "Nothing was used up today."),
    table("Limits", ["Of each", "Of what", "How much"], limits, "There are no limits."),
    el("p", { class: "dim" }, "A limit can be lowered under ", el("a", { href: "#/settings" }, "Settings"), "; it is raised at the machine, with ", el("code", {}, "bailey config edit"), "."),
  );
}

// Where a copy of the home lies.
const copiedTo = (told) => told.map((line) => el("p", {}, line.remark ?? Object.entries(line).map(([key, it]) => `${key.replaceAll("_", " ")}: ${valued(it)}`).join(" · ")));

export async function settings(view, signal) {
  title(view, "Settings");
  const names = ["settings", "walls", "browsers", "people", "tools", "models", "sessions"];
  const [all, walls, browsers, people, tools, models, sessions] = await Promise.all(
    names.map((name) => home.list(`/api/${name}`, { signal, codes: ["walls", "models"].includes(name) }).catch((error) => error)),
  );
  const copied = outcome();
  const copy = worker("Make a backup of the home", () => copied.of(() => home.act({ act: "backup" }), copiedTo));
  const words = () => (home.mayNotify() ? "Notify me no more" : "Notify me of questions and of the end of long turns");
  const notices = button(words(), async () => {
    const wanted = !home.mayNotify();
    if ((await home.wantNotices(wanted)) !== wanted) say("This browser allows no notifications from this page.");
    notices.textContent = words();
  });
  fill(view, el("div", { class: "tools" }, copy, globalThis.Notification ? notices : null), copied.node);
  const own = (it) => (home.speaker(String(it.login)) === "You" ? [it.name, " ", el("span", { class: "badge ok" }, "this browser")] : it.name);
  const part = (lines, show) => fill(view, lines instanceof Error ? trouble(lines) : show(lines));
  part(browsers, (lines) => table("Logins of this page", ["Number", "What", "Name", "Since", "Seen"], lines.map((it) => [it.login, it.kind, own(it), time(it.since), time(it.seen)]), "Nobody."));
  fill(view, el("div", { class: "tools" }, worker("Log this browser out", async () => {
    await home.post("/api/logout", {}).catch(() => {});
    home.leave();
  }, "danger")));
  part(all, (lines) => changing(lines, models, sessions));
  part(people, (lines) => table("People of the chat channels", ["Channel", "Name", "Role"], lines.map((it) => [it.channel, it.name, it.role ?? "asks to be let in"]), "Nobody: there are no channels, or nobody has been let in."));
  part(walls, (lines) => [table("Walls on this machine", ["Check", "Grade", "What was found"], lines.filter((it) => it.type !== "ended").map((it) => [it.check ?? it.wall ?? "", el("span", { class: `badge ${it.grade === "ok" ? "ok" : "ask"}` }, it.grade ?? ""), it.says ?? JSON.stringify(it)]), "The walls were not checked."), codeOf(lines) && el("p", { class: "trouble" }, `Not all that is needed is there (exit code ${codeOf(lines)}).`)]);
  part(tools, (lines) => table("Tools of the agent", ["Tool", "What it does"], lines.map((it) => [el("code", {}, it.name), it.summary]), "There are none."));
  part(all, (lines) => table("All settings, and where each comes from", ["Setting", "Value", "From"], lines.filter((it) => it.key).map((it) => [el("code", {}, it.key), el("code", {}, valued(it.value)), it.origin]), "There are none."));
}

const WAITS = "approvals.answer_seconds";
// The settings that can be changed here. The daemon has the same list, and refuses everything else.
const CHANGES = [
  [WAITS, "Seconds that a question waits for you before it counts as a no", "86400 here, 300 at a terminal"],
  ["limits.session_tokens", "Token limit of a session", "4000000"],
  ["limits.day_tokens", "Token limit of a day, for everything", "20000000"],
  ["limits.session_money", "Money limit of a session", "5.00 USD"],
  ["limits.day_money", "Money limit of a day, for everything", "20.00 USD"],
  ["limits.tool_calls", "Tool calls of one turn, at most", "200"],
];

function changing(all, models, sessions) {
  // The default of a question's time depends on who began the session, so it is not written down as one number.
  const present = new Map(all.filter((it) => it.key !== WAITS || it.origin !== "default").map((it) => [it.key, it.value]));
  const came = outcome();
  const save = (key, value) => came.of(() => home.act({ act: "set", key, value }), (lines) => told(lines.find((line) => line.key === key)));
  const told = (it) => {
    const others = "New conversations use it; what is open goes on as it is.";
    return it && [el("p", {}, el("span", { class: "badge ok" }, "saved"), " ", el("code", {}, it.key), " is ", el("code", {}, valued(it.value))), el("p", { class: "dim" }, others)];
  };
  const row = (node, key, value) =>
    el("form", { class: "change", onsubmit: (event) => (event.preventDefault(), save(key, value())) }, node, el("button", { type: "submit", "aria-label": `Save: ${key}` }, "Save"));
  const list = (it) => (it instanceof Error ? [] : it);
  const model = modelPicker("Default model", list(models), list(sessions), { isNamed: true });
  const line = ([key, label, placeholder]) => {
    const value = present.get(key);
    const input = el("input", { required: true, placeholder, value: value ?? undefined, inputmode: key.endsWith("_money") ? "text" : "numeric" });
    return row(field(label, input), key, () => input.value.trim());
  };
  return el(
    "section",
    { class: "card" },
    el("h2", {}, "Change a setting"),
    el("p", { class: "dim" }, "Limits can only become lower here. Everything else is changed at the machine, with ", el("code", {}, "bailey config edit"), "."),
    row(model.node, "model", () => model.value),
    CHANGES.map(line),
    came.node,
  );
}

// A value as a person writes it.
const valued = (value) => {
  if (value === null || value === undefined) return "not set";
  if (Array.isArray(value)) return value.length ? value.map(valued).join(", ") : "none";
  return typeof value === "object" ? Object.entries(value).map(([key, it]) => `${key}: ${valued(it)}`).join("; ") : String(value);
};

// What came of stopping everything, and what of it lives on.
export function stopped(lines) {
  const it = lines.find((line) => line.left);
  if (!it) return null;
  const one = ({ folder, process, says }) =>
    el("li", {}, el("code", {}, folder), process ? ` is in use by process ${process}` : " is in use, and the system does not tell by whom: end it where it was started", says && [", ", el("code", {}, says.command), ", since ", time(says.since)]);
  return [
    el("p", {}, `${it.ended} running ${it.ended === 1 ? "process" : "processes"} ended, after ${it.milliseconds} ms.`),
    it.barred && el("p", {}, "Nothing begins until you run this at the machine: ", el("code", {}, "bailey estop --release")),
    it.left.length > 0 && [el("p", { class: "trouble" }, "Still running:"), el("ul", {}, it.left.map(one))],
  ];
}

export async function logs(view, signal) {
  const came = outcome();
  const reason = el("input", { autocomplete: "off" });
  title(view, "Logs");
  const [about, channels, log] = ["p", "div", "div"].map((name) => el(name));
  // What is wanted in a hurry waits for nothing.
  fill(
    view,
    about,
    el(
      "section",
      { class: "card" },
      el("h2", {}, "Stop everything"),
      el("p", { class: "dim" }, "Everything that agents of this home do ends at once. Nothing begins until a person releases the stop at the machine."),
      field("Why", reason),
      el(
        "div",
        { class: "tools" },
        twice("Stop everything", () => came.of(() => home.act({ act: "estop", reason: reason.value }), stopped, stopped), "danger"),
        worker("Make a backup of the home", () => came.of(() => home.act({ act: "backup" }), copiedTo)),
      ),
      came.node,
    ),
    channels,
    log,
  );
  const part = async (node, name, show) => fill(node, await home.list(`/api/${name}`, { signal }).then(show, trouble));
  await Promise.all([
    part(channels, "status", ([it = {}]) => {
      fill(about, `Bailey ${it.version}, process ${it.pid}, since `, time(it.since), `; ${it.sessions?.length === 1 ? "1 session is" : `${it.sessions?.length ?? 0} sessions are`} open.`);
      return table("Channels", ["Name", "State", "Last word"], (it.channels ?? []).map((one) => [one.name, one.up ? "up" : "down", one.note]), "There are no channels.");
    }),
    part(log, "logs", (lines) => table("Log of the daemon", ["When", "Level", "What", "More"], lines.reverse().map(logged), "Nothing yet.")),
  ]);
}

const LEVELS = { error: "bad", warn: "ask" };

// A line of the log. What it says in a sentence is the same once more; what is none, such as one that was cut off, is what it is.
function logged({ time: at, level, message, what, remark, ...more }) {
  if (remark !== undefined) return ["", "", "", el("code", {}, remark)];
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const rest = Object.entries(more).map(([key, value]) => `${key}=${text(value)}`);
  return [time(at), level && el("span", { class: `badge ${LEVELS[level] ?? ""}` }, level), String(what ?? "").replaceAll("_", " "), el("code", {}, rest.join(" "))];
}
