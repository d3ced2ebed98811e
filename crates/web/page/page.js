// The page: who is let in, and which view is shown.

import { el, fill, say, trouble, twice } from "./dom.js";
import * as home from "./home.js";
import { chat, chats } from "./chat.js";
import * as views from "./views.js";

const main = document.getElementById("main");
const nav = document.getElementById("nav");

const VIEWS = [
  ["", "Chat", chats],
  ["approvals", "Approvals", views.approvals],
  ["sessions", "Sessions", views.sessions],
  ["permissions", "Permissions", views.permissions],
  ["audit", "Audit", views.audit],
  ["schedules", "Schedules", views.schedules],
  ["budgets", "Budgets", views.budgets],
  ["settings", "Settings", views.settings],
  ["logs", "Logs", views.logs],
];

// Ends what the view before was about.
let leaving = new AbortController();

// They stay what they are, for one of them may have the focus: what changes is which of them is shown.
const links = new Map(VIEWS.map(([path, name]) => [path, el("a", { href: `#/${path}` }, name)]));
nav.append(el("ul", {}, [...links.values()].map((link) => el("li", {}, link))));

function navigation(current) {
  nav.hidden = !home.isIn();
  for (const [path, link] of links) {
    if (path === current) {
      link.setAttribute("aria-current", "page");
      nav.scrollLeft = link.offsetLeft - nav.offsetLeft - 8;
    } else link.removeAttribute("aria-current");
  }
}

// Whoever goes somewhere goes on there by keyboard, and hears where that is; who just came is where their browser has them. A view that
// knows a better place has taken the focus there already.
let isFirst = true;
function arrive() {
  const heading = main.querySelector("h1");
  const isElsewhere = document.activeElement === main || !main.contains(document.activeElement);
  if (!isFirst && heading && isElsewhere) {
    heading.tabIndex = -1;
    heading.focus();
  }
  isFirst = false;
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const code = /^#code=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (code) {
    // It is good once, and is to stand in no history.
    history.replaceState(null, "", "#/");
    try {
      await home.enter(code);
    } catch (error) {
      if (!home.isIn()) return door(error);
    }
  }
  if (!home.isIn()) return door();
  const [path, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const [, name, view] = VIEWS.find(([known]) => known === path) ?? [null, "Chat", path === "chat" ? chat : chats];
  navigation(path === "chat" ? "" : path);
  home.entitle(name);
  const section = el("div", { class: "view", "aria-busy": "true" });
  main.replaceChildren(section);
  try {
    const shown = view(section, signal, ...rest.map(decodeURIComponent));
    arrive();
    await shown;
  } catch (error) {
    if (!signal.aborted && home.isIn()) fill(section, trouble(error));
  }
  section.removeAttribute("aria-busy");
}

function door(error) {
  navigation(null);
  home.entitle("Bailey");
  main.replaceChildren(
    el(
      "section",
      { class: "door" },
      el("h1", {}, "Log in"),
      el("p", {}, "You need a link to log in. Make one on the machine where Bailey runs:"),
      el("pre", { class: "code" }, el("code", {}, "bailey web link")),
      el("p", {}, "The link works once, within five minutes."),
      error ? trouble(error.status === 401 ? "That link does not work any more. Make another one." : error) : null,
    ),
  );
  arrive();
}

// It is a place on this page, and no view's address.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

// How many questions wait stands beside the way to them, and a daemon that has ended is told wherever one is.
const down = el("p", { id: "down", class: "trouble", role: "alert", hidden: true }, "Bailey cannot be reached, so this page shows nothing new. Check at the machine: ", el("code", {}, "bailey status"));
main.before(down);
window.addEventListener("home", ({ detail: { isUp, count } }) => {
  down.hidden = isUp || !home.isIn();
  links.get("approvals").textContent = count ? `Approvals (${count})` : "Approvals";
});

// Everything is stopped from wherever one is.
const halt = twice("Stop all agents", async () => {
  const section = el("section", { class: "view" });
  try {
    const lines = await home.act({ act: "estop", reason: "stopped at the page" });
    fill(section, el("h1", {}, "Everything was stopped"), views.stopped(lines));
  } catch (error) {
    fill(section, el("h1", {}, "Not everything was stopped"), views.stopped(error.lines ?? []), trouble(error));
  }
  leaving.abort();
  // No view is shown, so that each link leads to one.
  history.replaceState(null, "", "#/stopped");
  main.replaceChildren(section);
}, "danger");
nav.append(halt);

window.addEventListener("hashchange", show);
window.addEventListener("left", () => {
  say("You were logged out.");
  show();
});
show();
