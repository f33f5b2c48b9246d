// The review page. Every text comes from the program as it is to be shown, with what steers or hides made visible; here it only
// ever becomes text of the page, never markup.

const CHUNK = 400; // lines that are drawn at once
const $ = (id) => document.getElementById(id);
const state = { version: -1, board: { waiting: [], ended: [] }, past: [], chosen: null, drawn: null, wanted: null, split: false, file: 0, wrong: new Map() };

function el(name, props = {}, ...children) {
  const { aria = {}, ...rest } = props;
  const node = Object.assign(document.createElement(name), rest);
  for (const [key, value] of Object.entries(aria)) node.setAttribute(`aria-${key}`, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function say(text, isBad = false) {
  $("status").textContent = text;
  $("status").className = isBad ? "bad" : "";
}

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  if (!answer.ok) throw new Refused(answer.status, await answer.text());
  return answer.headers.get("content-type")?.includes("json") ? answer.json() : null;
}

// What is chosen: a question by its number, or a batch of the history by its id.
const key = (chosen) => chosen && (chosen.number !== undefined ? `w${chosen.number}` : `p${chosen.id}`);
const base = (chosen) => (chosen.number !== undefined ? `/api/waiting/${chosen.number}` : `/api/past/${encodeURIComponent(chosen.id)}`);
const asked = (chosen) => state.board.waiting.find((waiting) => waiting.number === chosen?.number);
// The question that is drawn: what is answered is what is seen, whatever was chosen since.
const question = () => (state.drawn && asked(state.drawn.chosen) ? state.drawn : null);

// What a question is called in a list: by its first file, which needs attention most.
function named({ title, isComparison, files: [first, ...more] }) {
  if (isComparison) return "Compare with withheld files?";
  if (!first) return title;
  return more.length ? `${first.name} and ${more.length} more` : first.name;
}

function listed() {
  const { waiting } = state.board;
  $("waiting").replaceChildren(...waiting.map((one) => item({ number: one.number }, named(one), `${one.totals} · asked ${one.seconds} s ago`)));
  if (waiting.length === 0) $("waiting").append(el("li", {}, el("small", { textContent: "Nothing waits." })));
  $("ended").replaceChildren(...state.board.ended.map((one) => el("li", {}, el("span", {}, one.title,
    el("small", { className: one.hasFailed ? "attention" : "", textContent: [one.how, one.outcome].filter(Boolean).join(": ") })))));
  $("past").replaceChildren(...state.past.map((one) => item({ id: one.id }, one.title,
    [new Date(one.unixMs).toLocaleString(), one.label, ...one.notes].filter(Boolean).join(" · "))));
  document.title = waiting.length ? `(${waiting.length}) Aptix review` : "Aptix review";
}

function item(chosen, title, note) {
  const isCurrent = key(chosen) === key(state.chosen);
  return el("li", {}, el("button", { type: "button", onclick: () => choose(chosen), aria: { current: String(isCurrent) } }, title, el("small", { textContent: note })));
}

async function choose(chosen) {
  if (key(chosen) !== key(state.chosen)) state.wrong.clear();
  Object.assign(state, { chosen, file: 0 });
  listed();
  const change = chosen === null ? null : chosen.number !== undefined ? asked(chosen) : await ask(base(chosen)).catch((error) => say(error.message, true));
  if (key(chosen) === key(state.chosen)) draw(change ? { chosen, ...change } : null);
}

function draw(change) {
  state.drawn = change;
  watcher.disconnect();
  const main = $("main");
  main.classList.toggle("split", state.split);
  if (change === null) {
    main.replaceChildren(el("p", { textContent: "Choose a batch: n shows the first that waits." }));
    return;
  }
  const isQuestion = change.chosen.number !== undefined;
  const deciding = el("div", { className: "deciding" });
  if (isQuestion) {
    deciding.append(
      el("button", { type: "button", id: "approve", className: "yes", onclick: approve }, change.isComparison ? "Compare (a)" : "Approve (a)"),
      el("button", { type: "button", id: "refuse", onclick: refuse }, change.isComparison ? "Do not compare (r)" : "Refuse (r)"),
      el("span", { className: "digest", textContent: `sha256:${change.digest}` }));
  } else if (state.past.find((one) => one.id === change.chosen.id)?.canBeUndone) {
    deciding.append(el("button", { type: "button", id: "undo", onclick: undo }, "Take back (u)"));
  }
  main.replaceChildren(
    el("h1", { textContent: change.title }),
    ...change.head.map((line) => el("div", { textContent: line })),
    el("p", { id: "totals", textContent: change.totals }),
    deciding,
    ...change.files.map((file, at) => section(change, file, at)),
    ...change.unchanged.map((line) => el("div", { className: "ours", textContent: line })));
  main.scrollTop = 0;
  mark();
}

function section(change, file, at) {
  const lines = el("div", { className: "lines" });
  const head = el("header", {}, el("h3", { textContent: file.title }));
  if (file.attention) head.append(el("p", { className: "attention", textContent: file.attention }));
  if (change.isPerFile && change.chosen.number !== undefined) head.append(choice(file, at));
  const node = el("section", { className: "file", id: `file-${at}`, aria: { label: file.title } }, head, lines);
  lines.style.minHeight = `calc(${Math.min(file.lines, CHUNK)} * var(--row))`;
  onceSeen(lines, () => load(`${base(change.chosen)}/files/${file.index}`, file, lines));
  return node;
}

function choice(file, at) {
  const why = el("input", { type: "text", maxLength: 2000, placeholder: "Why not? The author is told.", hidden: !state.wrong.has(file.index),
    value: state.wrong.get(file.index) ?? "", aria: { label: "Why this file is not right" }, oninput: () => state.wrong.set(file.index, why.value) });
  const box = el("input", { type: "checkbox", id: `wrong-${at}`, checked: state.wrong.has(file.index), onchange: () => {
    if (box.checked) state.wrong.set(file.index, why.value); else state.wrong.delete(file.index);
    why.hidden = !box.checked;
    box.closest("section").classList.toggle("wrong", box.checked);
    if (box.checked) why.focus();
  } });
  return el("div", {}, el("label", {}, box, " not right (x)"), why);
}

// Calls back when a node comes near to what is seen.
const pending = new WeakMap();
const watcher = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    pending.get(target)?.();
  }
}, { rootMargin: "1000px" });
function onceSeen(node, then) {
  pending.set(node, then);
  watcher.observe(node);
}

async function load(from, file, into) {
  let lines;
  try {
    lines = await ask(from);
  } catch (error) {
    into.replaceChildren(el("p", { className: "attention", textContent: error.message }));
    return;
  }
  const rows = numbered(lines, from, file.baseLines ?? 0);
  const shown = state.split ? paired(rows) : rows.map((row) => [row]);
  const code = language(file.title);
  into.style.minHeight = "";
  into.replaceChildren();
  for (let at = 0; at < shown.length; at += CHUNK) {
    const part = shown.slice(at, at + CHUNK);
    const chunk = el("div", { className: "chunk" });
    chunk.style.minHeight = `calc(${part.length} * var(--row))`;
    const fill = () => {
      chunk.style.minHeight = "";
      chunk.append(...part.map((row) => (state.split ? splitRow(row, code) : oneRow(row[0], code))));
    };
    if (at === 0) fill(); else onceSeen(chunk, fill);
    into.append(chunk);
  }
}

const lineRow = ([kind, text, rest], at, from) => ({ kind, text: "+- ".includes(kind) ? text.slice(1) : text, rest, at, from, length: [...text].length });

// Lines with their numbers in the old and the new file, and the partner of each changed line; between them, of the file before, the
// lines that are not shown.
function numbered(lines, from, baseLines) {
  let [before, after] = [1, 1];
  const rows = [];
  const gap = (end) => {
    if (end > before && end <= baseLines + 1) rows.push({ kind: "gap", from, before, after, count: end - before });
  };
  lines.forEach((line, at) => {
    const row = lineRow(line, at, from);
    const hunk = row.kind === "h" && /^@@ -(\d+)(?:,(\d+))? \+(\d+)/.exec(row.text);
    if (hunk) {
      const start = Number(hunk[1]) + (hunk[2] === "0" ? 1 : 0);
      gap(start);
      [before, after] = [start, Number(hunk[3])];
    }
    if (row.kind === " " || row.kind === "-") row.before = before++;
    if (row.kind === " " || row.kind === "+") row.after = after++;
    rows.push(row);
  });
  gap(baseLines + 1);
  for (let at = 0; at < rows.length; ) {
    const removed = run(rows, at, "-");
    const added = run(rows, at + removed, "+");
    for (let line = 0; line < Math.min(removed, added); line++) {
      [rows[at + line].partner, rows[at + removed + line].partner] = [rows[at + removed + line], rows[at + line]];
    }
    at += Math.max(removed + added, 1);
  }
  return rows;
}

function run(rows, from, kind) {
  let end = from;
  while (rows[end]?.kind === kind) end++;
  return end - from;
}

// Rows side by side: what was removed beside what was added for it.
function paired(rows) {
  const pairs = [];
  for (let at = 0; at < rows.length; ) {
    const removed = run(rows, at, "-");
    const added = run(rows, at + removed, "+");
    if (removed + added === 0) {
      pairs.push([rows[at], rows[at]]);
      at++;
      continue;
    }
    for (let line = 0; line < Math.max(removed, added); line++) {
      pairs.push([line < removed ? rows[at + line] : null, line < added ? rows[at + removed + line] : null]);
    }
    at += removed + added;
  }
  return pairs;
}

const CLASSES = { "+": "added", "-": "removed", " ": "kept", h: "header", o: "ours", b: "ours" };
const number = (value) => el("span", { className: "number", textContent: value ?? "", aria: { hidden: "true" } });

// Lines that are not shown because nothing becomes of them, until they are asked for.
function gapRow({ from, before, after, count }, code) {
  const label = () => `${count.toLocaleString("en")} unchanged ${count === 1 ? "line" : "lines"}: show`;
  const button = el("button", { type: "button", className: "more gap", onclick: async () => {
    button.disabled = true;
    const lines = await ask(`${from}/base/${before}/${count}`).catch((error) => say(error.message, true));
    button.disabled = false;
    if (!lines) return;
    node.before(...lines.map((line, at) => {
      const row = { ...lineRow(line, before + at, `${from}/base`), before: before + at, after: after + at };
      return state.split ? splitRow([row, row], code) : oneRow(row, code);
    }));
    [before, after, count] = [before + lines.length, after + lines.length, count - lines.length];
    if (count > 0 && lines.length > 0) button.textContent = label(); else node.remove();
  } }, label());
  const node = el("div", { className: "row gap" }, number(), number(), button);
  return node;
}

function oneRow(row, code) {
  if (row.kind === "gap") return gapRow(row, code);
  const sign = "+-".includes(row.kind) ? row.kind : " ";
  return el("div", { className: `row ${CLASSES[row.kind]}` }, number(row.before), number(row.after), text(row, code, `${sign} `));
}

function splitRow([left, right], code) {
  if (left?.kind === "gap") return gapRow(left, code);
  if (left === right && !(" ".includes(left.kind))) return el("div", { className: `row ${CLASSES[left.kind]}` }, number(), text(left, code, ""), number(), el("span"));
  const half = (row, side) => [number(row?.[side]), row ? text(row, code, "") : el("span")];
  const node = el("div", { className: "row" }, ...half(left, "before"), ...half(right, "after"));
  if (left && left !== right) node.children[1].classList.add("removed");
  if (right && left !== right) node.children[3].classList.add("added");
  return node;
}

function text(row, code, sign) {
  const node = el("span", { className: "text" }, sign, ...pieces(row, code));
  if (row.rest > 0) node.append(more(row));
  return node;
}

// A long line is folded, and says by how much.
function more(row) {
  let [shown, rest] = [row.length, row.rest];
  const label = () => `and ${rest.toLocaleString("en")} more characters: show`;
  const button = el("button", { type: "button", className: "more", onclick: async () => {
    const piece = await ask(`${row.from}/lines/${row.at}/${shown}`).catch((error) => say(error.message, true));
    if (!piece) return;
    button.before(piece.text);
    shown += [...piece.text].length;
    rest = piece.rest;
    if (rest > 0) button.textContent = label(); else button.remove();
  } }, label());
  return button;
}

// What of a changed line differs from its partner, as a range: the words between those that both begin and end with.
function changed(row) {
  if (!row.partner || row.rest > 0 || row.partner.rest > 0) return null;
  const [mine, other] = [row.text, row.partner.text].map((line) => line.match(/\w+|\s+|[^\w\s]/gu) ?? []);
  let first = 0;
  while (first < mine.length && first < other.length && mine[first] === other[first]) first++;
  let last = 0;
  while (last < mine.length - first && last < other.length - first && mine.at(-1 - last) === other.at(-1 - last)) last++;
  const length = (words) => words.join("").length;
  const [from, to] = [length(mine.slice(0, first)), length(mine.slice(0, mine.length - last))];
  return from === 0 && to === row.text.length ? null : { from, to };
}

const WORDS = new Set(("as async await bool break case catch class const continue def default del do elif else enum export extends false final fn for from func function if impl " +
  "import in int interface let loop match mod mut new nil none None not null or package pass private pub public raise return self static str string struct super switch this throw trait " +
  "true True False try type undefined use var void where while with yield").split(" "));
const HASH = /\.(py|sh|bash|rb|ya?ml|toml|pl|r|mk|cfg|ini|conf)\b/i;
const CODE = /\.(rs|py|sh|bash|rb|ya?ml|toml|pl|js|mjs|ts|tsx|jsx|go|c|h|cc|cpp|hpp|cs|java|kt|swift|php|scala|css|json|proto|sql|lua|zig)\b/i;
const language = (title) => (!CODE.test(title) ? null : HASH.test(title) ? "#" : "/");

// The tokens of a line of code: strings, comments, numbers, words of a language.
function tokens(line, code) {
  if (code === null || line.length > 2000) return [["", line]];
  const found = [];
  const comment = code === "#" ? "#.*" : "\\/\\/.*|\\/\\*.*?(?:\\*\\/|$)|--\\s.*";
  const token = new RegExp(`("(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'|\`[^\`]*\`?)|(${comment})|(\\b\\d[\\w.]*)|([A-Za-z_]\\w*)`, "gu");
  let end = 0;
  for (const match of line.matchAll(token)) {
    const kind = match[1] !== undefined ? "s" : match[2] !== undefined ? "c" : match[3] !== undefined ? "n" : WORDS.has(match[4]) ? "w" : "";
    if (kind === "") continue;
    found.push(["", line.slice(end, match.index)], [kind, match[0]]);
    end = match.index + match[0].length;
  }
  found.push(["", line.slice(end)]);
  return found.filter(([, part]) => part !== "");
}

// A line as nodes: coloured, with what changed in it marked.
function pieces(row, code) {
  const isCode = "+- ".includes(row.kind);
  const range = isCode ? changed(row) : null;
  const nodes = [];
  let at = 0;
  for (const [kind, part] of tokens(row.text, isCode ? code : null)) {
    const cuts = range ? [range.from - at, range.to - at].map((cut) => Math.max(0, Math.min(part.length, cut))) : [part.length, part.length];
    const inked = (text) => (kind ? el("span", { className: kind, textContent: text }) : document.createTextNode(text));
    const [before, within, after] = [part.slice(0, cuts[0]), part.slice(cuts[0], cuts[1]), part.slice(cuts[1])];
    if (before) nodes.push(inked(before));
    if (within) nodes.push(el("mark", {}, inked(within)));
    if (after) nodes.push(inked(after));
    at += part.length;
  }
  return nodes;
}

async function decide(body) {
  const { chosen: { number }, digest } = state.drawn;
  try {
    const ended = await ask(`/api/waiting/${number}`, { digest, ...body });
    say(`${ended.title} was ${ended.how}.`);
  } catch (error) {
    say(error.message, true);
  }
}

function approve() {
  if (!question()) return;
  const refused = [...state.wrong].map(([file, reason]) => ({ file, reason }));
  decide({ approve: true, refused });
}

function refuse() {
  if (!question()) return;
  // Who edits a file that they are not shown is told the same for each no, so that no reason is asked for.
  if (state.drawn.dropsReason) return decide({ approve: false });
  const dialog = $("refusing");
  const { number } = state.drawn.chosen;
  $("reason").value = "";
  dialog.returnValue = "";
  dialog.onclose = () => {
    if (dialog.returnValue !== "refuse") return;
    if (question()?.chosen.number === number) decide({ approve: false, reason: $("reason").value });
    else say("The batch was decided meanwhile: nothing was refused.", true);
  };
  dialog.showModal();
  $("reason").focus();
}

async function undo() {
  const id = state.drawn?.chosen.id;
  if (id === undefined) return;
  // The question may be on the board before this call is answered.
  state.wanted = `Taking back batch ${id}`;
  try {
    await ask(`${base({ id })}/undo`, {});
    say("What taking it back would do waits for you now.");
  } catch (error) {
    state.wanted = null;
    say(error.message, true);
  }
}

function step(by) {
  const all = [...state.board.waiting.map((one) => ({ number: one.number })), ...state.past.map((one) => ({ id: one.id }))];
  const at = all.findIndex((one) => key(one) === key(state.chosen));
  const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
  if (next) choose(next);
}

function walk(by) {
  const count = state.drawn?.files.length ?? 0;
  if (count === 0) return;
  state.file = Math.max(0, Math.min(count - 1, state.file + by));
  mark();
  $(`file-${state.file}`).scrollIntoView({ block: "start" });
}

function mark() {
  document.querySelectorAll("section.file").forEach((node, at) => node.classList.toggle("current", at === state.file));
}

function open() {
  document.querySelectorAll("section.file.current button.gap").forEach((button) => button.click());
}

function wrong() {
  $(`wrong-${state.file}`)?.click();
}

function lay() {
  state.split = !state.split;
  $("layout").setAttribute("aria-pressed", String(state.split));
  draw(state.drawn);
}

const KEYS = { j: () => walk(1), k: () => walk(-1), n: () => step(1), p: () => step(-1), a: approve, r: refuse, u: undo, x: wrong, v: lay, o: open, "?": () => $("keys").showModal() };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey && event.key === "Enter" && $("refusing").open) $("refusing").close("refuse");
  const isTyping = event.target.matches?.("textarea, input[type=text]") || document.querySelector("dialog[open]");
  // A key that is held down decides once.
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.repeat && !"jk".includes(event.key)) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
$("layout").onclick = lay;
$("help").onclick = () => $("keys").showModal();

// Takes over what waits now. What is being looked at stays, unless it is over; then nothing takes its place by itself: a key that
// was meant for it must not decide about another one.
async function take(board) {
  Object.assign(state, { board, version: board.version });
  $("browsers").textContent = board.browsers > 1 ? `Opened in ${board.browsers} browsers` : "";
  state.past = await ask("/api/past");
  const wanted = board.waiting.find((one) => one.title === state.wanted);
  // Only now: something else may have been chosen meanwhile.
  if (state.chosen?.number !== undefined && !asked(state.chosen)) {
    const ended = board.ended.find((one) => one.number === state.chosen.number);
    if (ended) say(`${ended.title} was ${[ended.how, ended.outcome].filter(Boolean).join(": ")}.`, ended.hasFailed);
    $("refusing").close();
    await choose(null);
  } else if (wanted) {
    state.wanted = null;
    await choose({ number: wanted.number });
  } else {
    listed();
  }
}

async function live() {
  for (let wait = 250; ; ) {
    try {
      await take(await ask(state.version < 0 ? "/api/board" : `/api/board/after/${state.version}`));
      if (wait > 250) say("");
      wait = 250;
    } catch (error) {
      const isGone = error instanceof Refused && error.status < 500;
      say(isGone ? error.message : "The program does not answer; it is asked again.", true);
      if (isGone) return;
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, 5000);
    }
  }
}

draw(null);
live();
