// A model's Markdown as elements. No image is loaded and no link hides where it leads: both are words.

import { el, plain } from "./dom.js";

// Where a span may begin, and what it may be from there on.
const BEGIN = /`|!?\[|\*/g;
const ADDRESS = /\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)/y;
const EM = /\*(?=\S)([^*]*?\S)\*(?!\*)/y;
// Where a run of ticks, a link's words and strong words end.
const ENDS = [/(?<=`)(?!`)/g, /[\]\n]/g, /(?<=\S)\*\*/g];

// What people write may hold these two: emoji and some scripts are joined by them.
const words = (text) => text.split(/([\u200c\u200d\ufe0f])/).map((part, at) => (at % 2 ? part : plain(part))).join("");

function link(text, url, isImage) {
  if (isImage) return el("span", { class: "image" }, `[image: ${text}] `, el("code", {}, url));
  if (!/^https?:\/\//i.test(url)) return el("span", {}, text, " (", el("code", {}, url), ")");
  const shown = text === url ? [url] : [text, " ", el("code", {}, url)];
  return el("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, shown);
}

// Finds a pattern further and further on. No part of the text is looked at twice, however many spans begin that never end.
function ahead(text, pattern) {
  let found = -1;
  return (from) => {
    if (found >= from) return found;
    pattern.lastIndex = from;
    found = pattern.exec(text)?.index ?? Infinity;
    return found;
  };
}

function match(text, pattern, index) {
  pattern.lastIndex = index;
  return pattern.exec(text);
}

// Where runs of ticks begin, by their length, the first one last.
function runs(text) {
  const all = new Map();
  for (const { 0: run, index } of [...text.matchAll(/`+/g)].reverse()) {
    if (!all.has(run.length)) all.set(run.length, []);
    all.get(run.length).push(index);
  }
  return all;
}

function inline(text, depth = 0) {
  const parts = [];
  const [ticksEnd, labelEnd, strongEnd] = ENDS.map((end) => ahead(text, end));
  const ticks = runs(text);
  // Many links may begin before the same end of words.
  let address = { from: -1, found: null };
  let done = 0;
  const put = (from, to, node) => {
    parts.push(document.createTextNode(words(text.slice(done, from))), node);
    done = to;
  };
  for (const { 0: sign, index } of text.matchAll(BEGIN)) {
    if (index < done) continue;
    if (sign === "`") {
      const from = ticksEnd(index + 1);
      const ends = ticks.get(from - index) ?? [];
      while (ends.at(-1) < from) ends.pop();
      const to = ends.at(-1);
      if (to === undefined) continue;
      const code = text.slice(from, to);
      put(index, to + from - index, el("code", {}, code.trim() || code));
    } else if (sign !== "*") {
      const from = labelEnd(index + sign.length);
      if (from !== address.from) address = { from, found: from < Infinity ? match(text, ADDRESS, from) : null };
      if (!address.found) continue;
      const [all, url] = address.found;
      put(index, from + all.length, link(text.slice(index + sign.length, from), url, sign === "!["));
    } else {
      const isStrong = text[index + 1] === "*" && /\S/.test(text[index + 2] ?? "") && strongEnd(index + 3) < Infinity;
      const [name, marks] = isStrong ? ["strong", 2] : ["em", 1];
      const to = isStrong ? strongEnd(index + 3) + 2 : index + (match(text, EM, index)?.[0].length ?? 0);
      if (to === index) continue;
      const whole = text.slice(index, to);
      put(index, to, depth > 3 ? document.createTextNode(words(whole)) : el(name, {}, inline(whole.slice(marks, -marks), depth + 1)));
    }
  }
  parts.push(document.createTextNode(words(text.slice(done))));
  return parts;
}

// A table's cells: a bar behind a backslash belongs to its cell.
const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.replaceAll("\\|", "|").trim());
// The line below a table's heads, without blanks around it; a long line is none.
const RULER = /^\|?(?: *:?-+:? *\|)*(?: *:?-+:?)? *\|?$/;
const isRuler = (line = "") => line.length < 2000 && line.includes("-") && RULER.test(line.trim());
const COLUMNS_MAX = 20;

function table(rows) {
  const [head, , ...body] = rows.map(cells);
  const shown = el(
    "table",
    {},
    el("thead", {}, el("tr", {}, head.map((cell) => el("th", { scope: "col" }, inline(cell))))),
    el("tbody", {}, body.map((row) => el("tr", {}, head.map((_, at) => el("td", {}, inline(row[at] ?? "")))))),
  );
  return el("div", { class: "wide", role: "group", tabindex: "0", "aria-label": "Table" }, shown);
}

// Items beneath an item, by how far each is moved in; not deeper than a few steps.
function list(items, depth = 0) {
  const [first] = items;
  const isOrdered = first.number !== undefined;
  // It begins with the number that it has, such as behind a block of code.
  const start = isOrdered && Number(first.number) !== 1 ? Number(first.number) : null;
  const nodes = [];
  for (let at = 0; at < items.length; ) {
    let to = at + 1;
    while (to < items.length && items[to].indent > first.indent) to += 1;
    const below = items.slice(at + 1, to);
    const parts = [inline(items[at].words.join(" "))];
    if (below.length) parts.push(depth < 5 ? list(below, depth + 1) : below.map((it) => inline(` ${it.words.join(" ")}`)));
    nodes.push(el("li", {}, parts));
    at = to;
  }
  return el(isOrdered ? "ol" : "ul", { start }, nodes);
}

const ITEM = /^\s*(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/s;
const isBlock = (line) => /^(\s*```|\s*~~~|#{1,6}\s|\s*>|\s*$)/.test(line) || ITEM.test(line);

// The blocks of a text, and the text from the last of them on: none of the others changes by what follows.
export function markdown(text) {
  const blocks = [];
  const lines = text.split("\n");
  let [at, last] = [0, 0];
  while (at < lines.length) {
    const line = lines[at];
    if (line.trim()) last = at;
    const fence = /^\s*(```+|~~~+)\s*(\S*)/.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/s.exec(line);
    if (fence) {
      const code = [];
      for (at += 1; at < lines.length && !lines[at].trim().startsWith(fence[1]); at += 1) code.push(lines[at]);
      at += 1;
      const about = { class: "code", tabindex: "0", role: "group", "aria-label": `Code ${plain(fence[2])}` };
      blocks.push(el("pre", about, el("code", {}, code.join("\n"))));
    } else if (heading) {
      // The page's own headings are its outline; a model's are of any depth.
      blocks.push(el("p", { class: "heading" }, el("strong", {}, inline(heading[2]))));
      at += 1;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      blocks.push(el("hr"));
      at += 1;
    } else if (/^\s*>/.test(line)) {
      const quoted = [];
      for (; at < lines.length && /^\s*>/.test(lines[at]); at += 1) quoted.push(lines[at].replace(/^\s*>\s?/, ""));
      // Not deeper: a thousand signs are no thousand boxes.
      blocks.push(el("blockquote", {}, el("p", {}, inline(quoted.join("\n")))));
    } else if (ITEM.test(line)) {
      const items = [];
      for (; at < lines.length && lines[at].trim(); at += 1) {
        const item = ITEM.exec(lines[at]);
        const indent = /^\s*/.exec(lines[at])[0].length;
        const [first] = items;
        const isBelow = first && indent > first.indent;
        const isSame = !first || isBelow || (item?.[2] !== undefined) === (first.number !== undefined);
        if (item && isSame) items.push({ indent, number: item[2], words: [item[3]] });
        else if (item || isBlock(lines[at])) break;
        else items.at(-1).words.push(lines[at].trim());
      }
      blocks.push(list(items));
    } else if (line.includes("|") && isRuler(lines[at + 1]) && cells(line).length === cells(lines[at + 1]).length && cells(line).length <= COLUMNS_MAX) {
      const rows = [];
      for (; at < lines.length && lines[at].includes("|"); at += 1) rows.push(lines[at]);
      blocks.push(table(rows));
    } else if (line.trim()) {
      const paragraph = [line];
      for (at += 1; at < lines.length && !isBlock(lines[at]); at += 1) paragraph.push(lines[at]);
      blocks.push(el("p", {}, inline(paragraph.join("\n"))));
    } else {
      at += 1;
    }
  }
  return { blocks, rest: lines.slice(last).join("\n") };
}
