// Elements. Text is always text: nothing here, or anywhere on this page, reads HTML from a string.

// Characters that are not seen, or that turn others around: a name that holds one is shown with it.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

export const plain = (text) =>
  String(text).replace(UNSEEN, mark);

// As the terminal shows it: no language writes a character so.
const mark = (it) => {
  const code = it.codePointAt(0);
  if (code < 0x20 || code === 0x7f) return String.fromCharCode(code === 0x7f ? 0x2421 : 0x2400 + code);
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
};

export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else node.setAttribute(key, value);
  }
  return fill(node, children);
}

export function fill(node, ...children) {
  for (const child of children.flat(9)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : plain(child));
  }
  return node;
}

export const button = (text, onclick, kind) => el("button", { type: "button", class: kind, onclick }, text);

// How long the presses of a double click are apart at most, in milliseconds.
const DOUBLE = 400;

// A button for what takes a while: it is not done twice at once. What gave the focus away meanwhile has it again.
export function worker(text, work, kind) {
  const node = button(
    text,
    async (event) => {
      const isFocused = document.activeElement === node;
      node.disabled = true;
      try {
        await work(event);
      } finally {
        node.disabled = false;
        if (isFocused && document.activeElement === document.body) node.focus();
      }
    },
    kind,
  );
  return node;
}

// A button for what cannot be taken back: it is pressed a second time, and not by the same double click, nor by a key that is held.
export function twice(text, work, kind) {
  let armed = null;
  const become = (since) => {
    armed = since;
    node.textContent = since === null ? text : `${text}: press again`;
  };
  const press = () => {
    const now = performance.now();
    if (armed !== null && now - armed < DOUBLE) return undefined;
    const isSure = armed !== null;
    become(isSure ? null : now);
    return isSure ? work() : say(`Press again: ${text}`);
  };
  const node = worker(text, press, kind);
  node.addEventListener("keydown", (event) => event.repeat && event.preventDefault());
  // Whoever turns to something else has not meant it.
  node.addEventListener("blur", () => node.disabled || become(null));
  return node;
}

// The time where the person is: of today only the hour.
export function time(text) {
  if (!text) return "";
  const at = new Date(text);
  const isToday = at.toDateString() === new Date().toDateString();
  const shown = isToday ? at.toLocaleTimeString([], { timeStyle: "short" }) : at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  return el("time", { datetime: text, title: at.toLocaleString() }, shown);
}

// Money is counted in billionths. It has four places, rounded up: what costs something never shows as nothing.
export const money = (nanos) => (Number((BigInt(nanos) + 99999n) / 100000n) / 10000).toFixed(4);

export function thousands(count) {
  const number = Number(count);
  if (number < 1000) return String(number);
  return number < 999500 ? `${Math.round(number / 1000)}k` : `${(number / 1e6).toFixed(1)}M`;
}

// The use, in words: each unit with its sum, such as `21k tokens, 0.0630 USD`.
export const used = (spent = []) =>
  spent.map(({ unit, used }) => (unit === "tokens" ? `${thousands(used)} tokens` : `${money(used)} ${unit}`)).join(", ");

// Looks again and again while somebody sees it; what fails once may not fail the next time.
export async function watch(look, pause, signal) {
  for (;;) {
    await new Promise((done) => setTimeout(done, pause));
    if (signal.aborted) return;
    if (!document.hidden) await look().catch(() => {});
  }
}

export const short = (id) => String(id).slice(-4);

// A diff, each line marked by a sign and by colour.
export function diff(text) {
  const kind = (line) =>
    /^(\+\+\+|---|@@)/.test(line) ? "head" : line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : null;
  const lines = String(text).replace(/\n$/, "").split("\n");
  return el(
    "pre",
    { class: "diff", tabindex: "0", role: "group", "aria-label": "Changes" },
    lines.map((line) => el("span", { class: kind(line) }, `${line}\n`)),
  );
}

// What a screen reader says next. What comes in one moment is one thing to say: the last of it would be heard alone.
const next = [];
export function say(text) {
  if (next.push(plain(text)) > 1) return;
  setTimeout(() => (document.getElementById("said").textContent = next.splice(0).join(" ")), 50);
}

export const trouble = (error) => el("p", { class: "trouble", role: "alert" }, error.message ?? error);

// A list to choose from, whose last entry opens a line for anything else. Its `value` is what is chosen or written.
export function picker(label, choices, { other, placeholder, value, required }) {
  const OTHER = "\u0000";
  const line = el("input", { placeholder, required });
  if (choices.length === 0) return { node: field(label, line), get value() { return line.value.trim(); } };
  line.setAttribute("aria-label", `${label}: ${other}`);
  const options = [...choices, { value: OTHER, text: other }];
  const list = el("select", {}, options.map((it) => el("option", { value: it.value }, it.text ?? it.value)));
  if (value !== undefined) list.value = value;
  const change = () => {
    line.hidden = list.value !== OTHER;
    line.disabled = line.hidden;
  };
  list.addEventListener("change", () => (change(), line.hidden || line.focus()));
  change();
  const node = field(label, list);
  node.append(line);
  return { node, list, get value() { return line.hidden ? list.value : line.value.trim(); } };
}

let fields = 0;
export function field(label, control) {
  control.id ||= `field-${(fields += 1)}`;
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control);
}

export function table(caption, heads, rows, none) {
  if (rows.length === 0) return el("p", { class: "none" }, none);
  return el(
    "div",
    { class: "wide", role: "group", tabindex: "0", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))))),
    ),
  );
}
