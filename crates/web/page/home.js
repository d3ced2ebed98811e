// What this page asks of its home, and what it shows for being let in. Nothing else here knows the bearer.

const KEY = "bailey.bearer";
// Which of the browsers that are let in this one is. What it said tells it so.
const NUMBER = "bailey.number";
// A browser has six connections to a host, for all its tabs and windows together, and a conversation that is followed keeps one of them.
// So many are followed at once: the others are for what is asked and said meanwhile.
const FOLLOWED_MAX = 4;

export class Refused extends Error {
  constructor(status, why, lines = []) {
    super(why);
    // What came before that.
    Object.assign(this, { status, lines });
  }
}

export const isIn = () => localStorage.getItem(KEY) !== null;

// By which name people know who spoke at the page: the same one as it happens and from the journal.
export const speaker = (number) => (number === localStorage.getItem(NUMBER) ? "You" : `page ${number}`);
export const known = (number) => number && localStorage.setItem(NUMBER, number);

export function leave() {
  localStorage.removeItem(KEY);
  localStorage.removeItem(NUMBER);
  localStorage.removeItem(NOTIFY);
  open.count = 0;
  window.dispatchEvent(new Event("left"));
}

// Another tab may have logged this browser out: whoever sits here sees no more of the home either.
window.addEventListener("storage", ({ key }) => {
  if ((key === KEY || key === null) && !isIn()) leave();
});

async function ask(path, { body, signal, bearer = localStorage.getItem(KEY) } = {}) {
  const headers = {};
  if (bearer) headers.authorization = `Bearer ${bearer}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The daemon does not answer. Check at the machine whether it runs: bailey status");
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  // Somebody else may be let in meanwhile, in another tab. Whoever shows nothing any more has left, too; that a code is no good says
  // nothing of that.
  if (response.status === 401 && path !== "/api/login" && bearer === localStorage.getItem(KEY)) leave();
  throw new Refused(response.status, told.error ?? `refused (${response.status})`);
}

// Shows a one-time code, and keeps what it is exchanged for. A code that is no good says nothing of who is let in already.
export async function enter(code) {
  const { done } = await (await ask("/api/login", { body: { code }, bearer: null })).json();
  localStorage.removeItem(NUMBER);
  localStorage.setItem(KEY, done);
}

// A line of JSON. What a command remarks to people is none, nor is what was cut off.
function read(line) {
  try {
    return line.startsWith("{") ? JSON.parse(line) : { remark: line };
  } catch {
    return { remark: line };
  }
}

// All lines, as they come.
export async function* lines(path, options) {
  const reader = (await ask(path, options)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      for (const part of parts) if (part) yield read(part);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// A lock that all tabs of this browser know: what gives it back, or nothing where it is not to be had. `taken` is called when another
// tab takes it.
const hold = (name, how, taken) =>
  new Promise((got) => {
    const keep = (lock) => (lock ? new Promise((back) => got(back)) : got(null));
    navigator.locks.request(name, how, keep).catch(() => (got(null), taken()));
  });

// A place among those that are followed, in the same way. Whoever a person just turned to takes another's where none is free.
export async function place(isFirst, taken) {
  if (!navigator.locks) return () => {};
  const names = Array.from({ length: FOLLOWED_MAX }, (_, at) => `bailey.followed.${at}`);
  for (const name of names) {
    const back = await hold(name, { ifAvailable: true }, taken);
    if (back) return back;
  }
  return isFirst ? hold(names[Math.floor(Math.random() * names.length)], { steal: true }, taken) : null;
}

const ended = (code) =>
  code === null
    ? "It took too long and was ended; the daemon's log may say more"
    : `It ended before it was done (exit code ${code}); the daemon's log may say more`;

// All lines of a view; an error among them is one, and so is an end before it was done. Where exit codes are part of the answer
// (`codes`), such an end is a line like the others, but no answer by itself.
export async function list(path, { codes, ...options } = {}) {
  const all = [];
  for await (const line of lines(path, options)) {
    if (line.type === "error") throw new Refused(409, line.error, all);
    const isAnswer = codes && line.code !== null && all.length > 0;
    if (line.type === "ended" && !isAnswer) throw new Refused(409, ended(line.code), all);
    all.push(line);
  }
  return all;
}

export const act = (body, options) => list("/api/do", { ...options, body });

// What is open, in the tab's title and on the way to it, and the name of the view.
const open = { count: 0, name: "Bailey" };
const titled = () => (document.title = `${open.count ? `(${open.count}) ` : ""}${open.name}`);
export function entitle(name) {
  open.name = name === "Bailey" ? name : `${name} · Bailey`;
  titled();
}

// Whether the daemon answers, and how many questions wait: its own figures, which start no process.
const LOOK = 3000;
async function look() {
  if (!isIn()) return;
  try {
    const figures = await (await ask("/metrics")).text();
    const count = Number(/^bailey_questions(?:\{[^}]*\})? (\d+)/m.exec(figures)?.[1] ?? 0);
    window.dispatchEvent(new CustomEvent("home", { detail: { isUp: true, count } }));
    open.count = count;
    titled();
  } catch (error) {
    if (error.status === 0) window.dispatchEvent(new CustomEvent("home", { detail: { isUp: false, count: 0 } }));
  }
}
setInterval(() => (document.hidden && !mayNotify() ? null : look()), LOOK);
window.addEventListener("focus", look);

// A message of the browser itself, where its person asked for such and looks elsewhere.
const NOTIFY = "bailey.notify";
export const mayNotify = () => globalThis.Notification?.permission === "granted" && localStorage.getItem(NOTIFY) === "yes";
export async function wantNotices(wanted) {
  if (wanted && (await Notification.requestPermission()) !== "granted") return false;
  localStorage.setItem(NOTIFY, wanted ? "yes" : "no");
  return wanted;
}
export function notify(title, body, hash) {
  if (!document.hidden || !mayNotify()) return;
  try {
    const notice = new Notification(title, { body, icon: "/icon.svg", tag: hash });
    notice.onclick = () => {
      window.focus();
      location.hash = hash;
      notice.close();
    };
  } catch {
    // Some phones let no page make one by itself.
  }
}

export const post = async (path, body) => (await (await ask(path, { body })).json()).done;
