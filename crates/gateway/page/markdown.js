// A model's Markdown as elements. No image is loaded and no link hides where it leads: both are words.

import { el, plain } from "./dom.js";

const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|!?\[([^\]\n]*)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)|\*\*(?=\S)([\s\S]*?\S)\*\*|\*(?=\S)([^*]*?\S)\*(?!\*)/g;

// What people write may hold these two: emoji and some scripts are joined by them.
const words = (text) => text.split(/([\u200c\u200d\ufe0f])/).map((part, at) => (at % 2 ? part : plain(part))).join("");

function link(text, url, isImage) {
  if (isImage) return el("span", { class: "image" }, `[image: ${text}] `, el("code", {}, url));
  if (!/^https?:\/\//i.test(url)) return el("span", {}, text, " (", el("code", {}, url), ")");
  const shown = text === url ? [url] : [text, " ", el("code", {}, url)];
  return el("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, shown);
}

function inline(text, depth = 0) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    const [all, ticks, code, label, url, strong, em] = match;
    parts.push(document.createTextNode(words(text.slice(at, match.index))));
    at = match.index + all.length;
    if (ticks) parts.push(el("code", {}, code.trim() || code));
    else if (url !== undefined) parts.push(link(label, url, all[0] === "!"));
    else if (depth > 3) parts.push(document.createTextNode(words(all)));
    else if (strong) parts.push(el("strong", {}, inline(strong, depth + 1)));
    else parts.push(el("em", {}, inline(em, depth + 1)));
  }
  parts.push(document.createTextNode(words(text.slice(at))));
  return parts;
}

const ITEM = /^\s*(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
const isBlock = (line) => /^(\s*```|\s*~~~|#{1,6}\s|\s*>|\s*$)/.test(line) || ITEM.test(line);

export function markdown(text) {
  const blocks = [];
  const lines = text.split("\n");
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = /^\s*(```+|~~~+)\s*(\S*)/.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (fence) {
      const code = [];
      for (at += 1; at < lines.length && !lines[at].trim().startsWith(fence[1]); at += 1) code.push(lines[at]);
      at += 1;
      const about = { class: "code", tabindex: "0", role: "region", "aria-label": `Code ${plain(fence[2])}` };
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
      const isOrdered = ITEM.exec(line)[2] !== undefined;
      const items = [];
      for (; at < lines.length && lines[at].trim(); at += 1) {
        const item = ITEM.exec(lines[at]);
        if (item && (item[2] !== undefined) === isOrdered) items.push([item[3]]);
        else if (item || isBlock(lines[at])) break;
        else items.at(-1).push(lines[at].trim());
      }
      blocks.push(el(isOrdered ? "ol" : "ul", {}, items.map((item) => el("li", {}, inline(item.join(" "))))));
    } else if (line.trim()) {
      const paragraph = [line];
      for (at += 1; at < lines.length && !isBlock(lines[at]); at += 1) paragraph.push(lines[at]);
      blocks.push(el("p", {}, inline(paragraph.join("\n"))));
    } else {
      at += 1;
    }
  }
  return blocks;
}
