"use strict";
// Zoom, pan and inspection. The page is complete without: this places the
// marks of the picture anew, by the rules that drew it. It reads instants and
// texts from the document alone, and writes texts only as text.
(() => {
  const svg = document.getElementById("picture");
  const panel = document.getElementById("panel"), help = document.getElementById("help"), tools = document.getElementById("tools");
  const data = svg.dataset, unit = Number(data.unit);
  const extent = [Number(data.from), Number(data.to)], first = [Number(data.first), Number(data.last)];
  const focus = data.focus ? data.focus.split(" ").map(Number) : null;
  const height = svg.viewBox.baseVal.height;
  const beyond = 24, fade = 110, shortFade = 16, leastWidth = 5;
  let left = Number(data.left), right = Number(data.right), view = first.slice(), chosen = null, at = -1, wide = 0, touched = false;

  const all = (q, root = svg) => [...root.querySelectorAll(q)];
  const num = (e, k) => Number(e.dataset[k]);
  const set = (e, o) => { for (const k in o) e.setAttribute(k, typeof o[k] === "number" ? Math.round(o[k] * 10) / 10 : o[k]); };
  const show = (e, yes) => yes ? e.removeAttribute("display") : e.setAttribute("display", "none");
  const X = t => t === Infinity ? right + beyond : t === -Infinity ? left - beyond : left + (t - view[0]) / (view[1] - view[0]) * (right - left);
  const clip = x => Math.min(Math.max(x, left - beyond), right + beyond);
  const sees = (a, b) => b >= left && a <= right;

  const pen = document.createElement("canvas").getContext("2d"), widths = new Map();
  pen.font = "11.5px " + getComputedStyle(svg).fontFamily;
  const textWidth = s => {
    if (!widths.has(s)) widths.set(s, pen.measureText(s).width);
    return widths.get(s);
  };
  const fitting = (room, ...texts) => texts.find(s => s && textWidth(s) <= room) || "";
  const write = (e, s) => { if (e.textContent !== s) e.textContent = s; };

  // What is drawn, read once.
  const spans = all("rect[data-a]").map(e => ({ e, a: num(e, "a"), b: num(e, "b"), pad: num(e, "pad") || 0, least: num(e, "least") || 0 }));
  const edges = all("line[data-a]").map(e => ({ e, a: num(e, "a") }));
  const points = all("[data-a][data-y]").map(e => ({ e, a: num(e, "a"), y: num(e, "y") }));
  const groups = all(".fault,.bar,.flag").map(e => ({ e, a: num(e, "a"), b: num(e, "b") }));
  const lines = all("[data-p]").map(e => ({ e, p: e.dataset.p.split(" ").filter(Boolean).map(s => s.split(",").map(Number)) }));
  const bars = all(".bar,.fault").map(e => ({
    label: e.querySelector(".label"), point: !!e.querySelector(".point"),
    // A label stands where the lease was held for certain, if it was.
    span: e.querySelector(".must") || e, a: 0, b: 0,
  }));
  for (const b of bars) { b.a = num(b.span, "a"); b.b = b.span.dataset.b === undefined ? b.a : num(b.span, "b"); }
  const ops = all(".op").map(e => ({
    e, id: e.id.slice(2), a: num(e, "a"), b: num(e, "b"), row: e.dataset.row, body: e.querySelector(".body"), ring: e.querySelector(".ring"),
    cross: e.querySelector(".cross"), doubt: e.querySelector(".doubt"), label: e.querySelector(".label"), badge: e.querySelector(".badge"),
  }));
  const flags = all(".flag.top").map(e => ({ e, n: num(e, "n"), a: num(e, "a"), check: e.querySelector(".check") }));
  const dots = all(".dot").map(e => ({ e, row: e.dataset.row, a: num(e, "a"), n: e.dataset.n, circle: e.querySelector("circle"), text: e.querySelector("text") }));
  const names = all(".row[data-s]").map(e => ({ e: e.lastChild, brief: e.dataset.s, wide: e.lastChild.textContent }));
  const findings = [...new Set(flags.map(f => f.n))];

  function layout() {
    svg.dataset.view = view.join(" ");
    for (const s of spans) {
      const x = clip(X(s.a)), w = Math.max(clip(X(s.b)) - x, s.least);
      set(s.e, { x: x - s.pad, width: w + 2 * s.pad });
    }
    for (const l of edges) { const x = clip(X(l.a)); set(l.e, { x1: x, x2: x }); }
    for (const p of points) {
      const x = X(p.a);
      p.e.setAttribute("transform", `translate(${clip(x).toFixed(1)} ${p.y})`);
      show(p.e, sees(x - 10, x + 10));
    }
    for (const g of groups) show(g.e, sees(X(g.a), X(g.b)));
    for (const l of lines) l.e.setAttribute("points", l.p.map(([t, y]) => Math.min(Math.max(X(t), -1e5), 1e5).toFixed(1) + "," + y).join(" "));
    for (const b of bars) {
      const x = Math.max(clip(X(b.a)), left) + (b.point ? 8 : 6), room = b.point ? Infinity : Math.min(X(b.b), right) - x - 2;
      set(b.label, { x });
      write(b.label, fitting(room, b.label.dataset.t, b.label.dataset.s));
    }
    layoutOps();
    const room = flags.map(f => X(f.a));
    flags.forEach((f, i) => {
      const x = room[i] + 14;
      let to = right;
      room.forEach((o, j) => { if (j !== i && o >= room[i] && sees(o, o)) to = Math.min(to, o - 12); });
      set(f.check, { x });
      write(f.check, fitting((to - x) / 1.08, f.check.dataset.t));
      show(f.e, sees(room[i] - 9, room[i] + 9));
    });
    const last = {};
    for (const d of dots) {
      const x = X(d.a), small = d.row in last && x - last[d.row] < 16;
      if (!small) last[d.row] = x;
      d.circle.setAttribute("r", small ? 3 : 7.5);
      write(d.text, small ? "" : d.n);
    }
    layoutTicks();
    const whole = extent[1] - extent[0], from = Math.max((view[0] - extent[0]) / whole, 0), to = Math.min((view[1] - extent[0]) / whole, 1);
    set(document.getElementById("seen"), { x: from * 1000, width: Math.max((to - from) * 1000, 2) });
  }

  function layoutOps() {
    const next = {};
    for (let i = ops.length - 1; i >= 0; i--) {
      const m = ops[i], x0 = X(m.a), room = m.row in next ? next[m.row] : right + beyond;
      next[m.row] = x0;
      const x1 = m.doubt ? Math.max(x0 + shortFade, Math.min(Math.max(x0 + fade, Number.isFinite(m.b) ? X(m.b) : 0), room - 14)) : Math.max(x0 + leastWidth, X(m.b));
      const seen = sees(x0, x1 + 10);
      show(m.e, seen);
      if (!seen && m.e !== document.activeElement) continue;
      const a = clip(x0), b = clip(x1), w = Math.max(b - a, 0);
      set(m.body, { x: a, width: w });
      if (m.ring) set(m.ring, { x: a - 3, width: w + 6 });
      if (m.badge) m.badge.setAttribute("transform", `translate(${a.toFixed(1)} ${m.badge.dataset.y})`);
      const end = m.ring ? b + 4 : b, after = end + (m.cross || m.doubt ? 14 : 5), within = Math.max(a, left) + 6, { t, s } = m.label.dataset;
      if (m.cross) m.cross.setAttribute("transform", `translate(${(end + 7).toFixed(1)} ${m.cross.dataset.y})`);
      if (m.doubt) set(m.doubt, { x: end + 7 });
      const on = Math.min(b, right) - within - 4, off = Math.min(room - 4, right) - after;
      let text = fitting(on, t), inside = !!text;
      if (!text) text = fitting(off, t);
      if (!text) { text = fitting(on, s); inside = !!text; }
      if (!text) text = fitting(off, s);
      write(m.label, text);
      m.label.classList.toggle("on", inside);
      set(m.label, { x: inside ? within : after });
    }
  }

  // The axis.
  const second = 1e9, minute = 60 * second;
  function niceStep(least) {
    if (unit === 0 && least > 50 * second) {
      const m = [1, 2, 5, 10, 20, 30, 60, 120, 240, 480, 1440].find(m => m * minute >= least);
      return m ? m * minute : Math.ceil(least / (1440 * minute)) * 1440 * minute;
    }
    const step = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
    return step * ([1, 2, 5, 10].find(m => m * step >= least) || 10);
  }
  function tickLabel(t, step, most) {
    if (unit === 1) return t.toFixed(0);
    if (step >= minute) {
      const m = Math.round(t / minute);
      return m % 60 === 0 && m !== 0 ? m / 60 + " h" : m > 60 ? Math.floor(m / 60) + " h " + m % 60 : m + " min";
    }
    const [size, suffix] = most >= 1e9 ? [1e9, "s"] : most >= 1e6 ? [1e6, "ms"] : most >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return (t / size).toFixed(Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9))) + " " + suffix;
  }
  const ticks = document.getElementById("ticks"), grid = ticks.querySelector(".grid"), axisY = (ticks.querySelector("text") || { getAttribute: () => 18 }).getAttribute("y");
  const top = grid ? grid.getAttribute("y1") : 26, bottom = grid ? grid.getAttribute("y2") : height;
  function layoutTicks() {
    const ns = svg.namespaceURI, step = niceStep((view[1] - view[0]) * (right - left < 500 ? 72 : 92) / Math.max(right - left, 1)), marks = [];
    for (let k = Math.ceil(view[0] / step); k * step <= view[1]; k++) {
      const line = document.createElementNS(ns, "line"), text = document.createElementNS(ns, "text"), x = X(k * step);
      line.setAttribute("class", "grid");
      set(line, { x1: x, x2: x, y1: top, y2: bottom });
      set(text, { x, y: axisY });
      text.textContent = tickLabel(k * step, step, Math.max(Math.abs(view[0]), Math.abs(view[1])));
      marks.push(line, text);
    }
    ticks.replaceChildren(...marks);
  }

  // resize makes the picture as wide as its place, at the size of its texts.
  function resize(width) {
    if (!width || width === wide) return;
    wide = width;
    const narrow = width < 640, was = left;
    left = narrow ? 64 : Number(data.left);
    right = width - (narrow ? 6 : 20);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    set(svg, { width });
    set(svg.querySelector("#canvas rect"), { x: left, width: right - left });
    set(document.getElementById("overview"), { x: left, width: right - left });
    all(".paper").forEach(e => set(e, { width }));
    all(".life,.level-line").forEach(e => set(e, { x1: left, x2: right }));
    all(".section").forEach(e => set(e, { x2: width }));
    all(".level").forEach(e => set(e, { x: left }));
    for (const n of names) {
      let s = narrow ? n.brief : n.wide;
      if (narrow) while (s.length > 1 && textWidth(s) > left - 12) s = s.replace(/.…?$/u, "") + "…";
      write(n.e, s);
    }
    layout();
  }
  const measure = () => resize(Math.round(svg.parentElement.clientWidth));

  let waiting = false;
  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; layout(); });
  }

  // look moves what is seen: never beyond the extent, never below what numbers
  // can tell apart.
  function look(from, to) {
    const whole = extent[1] - extent[0], least = Math.min(whole, unit === 1 ? 4 : Math.max(20, whole / 1e6)), size = Math.min(Math.max(to - from, least), whole);
    from = Math.min(Math.max((from + to - size) / 2, extent[0]), extent[1] - size);
    view = [from, from + size];
    touched = true;
    draw();
  }
  const zoom = (by, x = (left + right) / 2) => {
    const t = view[0] + (x - left) / (right - left) * (view[1] - view[0]);
    look(t - (t - view[0]) * by, t + (view[1] - t) * by);
  };
  const pan = part => { const by = (view[1] - view[0]) * part; look(view[0] + by, view[1] + by); };
  const reveal = (a, b) => {
    b = Number.isFinite(b) ? b : a;
    const size = view[1] - view[0];
    if (b < view[0] + size * .03 || a > view[1] - size * .03 || a < view[0] && b < view[1]) look((a + b - size) / 2, (a + b + size) / 2);
  };

  function finding(n) {
    at = findings.indexOf(n);
    const own = flags.filter(f => f.n === n), bands = all(`.flag:not(.top)[data-n="${n}"]`);
    if (!own.length) return;
    const a = Math.min(...bands.map(e => num(e, "a"))), ends = bands.map(e => num(e, "b")).filter(Number.isFinite);
    const b = Math.max(a, ...ends), size = Math.max((b - a) * 1.8, (first[1] - first[0]) * .5);
    look((a + b - size) / 2, (a + b + size) / 2);
    tell(own[0].e);
  }
  // opening is what is seen first. A narrow screen sees less, at the same size.
  function opening() {
    const size = first[1] - first[0], all = first[0] <= extent[0] && first[1] >= extent[1];
    if (!focus || all || right - left > 600) look(...first);
    else {
      const [a, b] = focus, less = Math.max(size * (right - left) / (Number(data.right) - Number(data.left)), (b - a) * 1.6);
      look((a + b - less) / 2, (a + b + less) / 2);
    }
    touched = false;
  }
  const step = by => { if (findings.length) finding(findings[((at < 0 && by < 0 ? 0 : at) + by + findings.length) % findings.length]); };

  // tell writes into the panel what a mark is.
  function tell(e) {
    const line = (c, s) => {
      const p = document.createElement("p");
      p.className = c;
      p.textContent = s;
      return p;
    };
    const row = e.classList.contains("op") && document.getElementById("row" + e.id.slice(2));
    if (!row) {
      const title = e.querySelector("title");
      panel.replaceChildren(line("what", title ? title.textContent : ""));
      return;
    }
    const [when, who, what, outcome, where, details, place] = [...row.cells].map(c => c.textContent);
    const some = (...all) => all.filter(Boolean).join(" · ");
    panel.replaceChildren(line("what" + (row.className ? " violates" : ""), who + ": " + what), line("", some(outcome, when, where)), line("more", some(details, place)));
  }
  function choose(e, focus) {
    if (chosen) chosen.classList.remove("chosen");
    chosen = e;
    if (!e) return panel.replaceChildren(hint);
    e.classList.add("chosen");
    tell(e);
    if (focus) e.focus({ preventScroll: true });
  }
  const hint = panel.firstElementChild;

  const deeds = {
    in: () => zoom(1 / 1.5), out: () => zoom(1.5), fit: () => look(...extent), focus: () => { at = -1; opening(); }, next: () => step(1), previous: () => step(-1),
    order: () => {
      const off = svg.classList.toggle("no-order"), b = tools.querySelector("[data-do=order]");
      if (b) b.setAttribute("aria-pressed", String(!off));
    },
    help: () => { help.hidden = !help.hidden; },
  };
  const keys = { "+": "in", "=": "in", "-": "out", _: "out", 0: "fit", v: "focus", n: "next", p: "previous", l: "order", "?": "help" };
  document.addEventListener("keydown", ev => {
    if (ev.ctrlKey || ev.metaKey || ev.altKey) return;
    const deed = keys[ev.key];
    if (deed) deeds[deed]();
    else if (ev.key === "ArrowLeft") pan(-.15);
    else if (ev.key === "ArrowRight") pan(.15);
    else if (ev.key === "Escape") {
      if (!help.hidden) help.hidden = true;
      else { choose(null); if (svg.contains(document.activeElement)) document.activeElement.blur(); }
    } else if ((ev.key === "Enter" || ev.key === " ") && ev.target.closest && ev.target.closest(".flag")) finding(num(ev.target.closest(".flag"), "n"));
    else return;
    ev.preventDefault();
  });
  tools.addEventListener("click", ev => { const b = ev.target.closest("button"); if (b) deeds[b.dataset.do](); });
  document.addEventListener("click", ev => {
    const b = ev.target.closest(".goto,.see");
    if (!b) return;
    ev.preventDefault();
    if (b.dataset.n) finding(Number(b.dataset.n));
    const e = b.dataset.id && document.getElementById("op" + b.dataset.id);
    if (e) { reveal(num(e, "a"), num(e, "b")); layout(); choose(e, true); }
    svg.scrollIntoView({ block: "nearest" });
  });

  // An operation that is out of sight comes into it before it has the focus: the
  // browser gives none to what is not drawn.
  document.addEventListener("keydown", ev => {
    if (ev.key !== "Tab") return;
    const e = document.activeElement && document.activeElement.closest(".op");
    if (!e) return;
    const i = ops.findIndex(m => m.e === e) + (ev.shiftKey ? -1 : 1);
    if (i < 0 || i >= ops.length) return;
    ev.preventDefault();
    reveal(ops[i].a, ops[i].b);
    layout();
    choose(ops[i].e, true);
  });
  const told = ".op,.bar,.fault,.landing,.stuck,.flag.top";
  svg.addEventListener("focusin", ev => { const e = ev.target.closest(".op"); if (e) choose(e); });
  svg.addEventListener("pointerover", ev => { const e = ev.target.closest(told); if (e && !pointers.size) tell(e); });
  svg.addEventListener("pointerout", ev => { if (!pointers.size && ev.target.closest(told)) chosen ? tell(chosen) : panel.replaceChildren(hint); });

  // Pixels of the picture; they are those of the screen but in print.
  const place = ev => {
    const box = svg.getBoundingClientRect();
    return [(ev.clientX - box.left) * wide / box.width, (ev.clientY - box.top) * wide / box.width];
  };
  svg.addEventListener("wheel", ev => {
    const [x] = place(ev);
    if (x < left) return; // over the names the page scrolls
    ev.preventDefault();
    const unit = ev.deltaMode === 1 ? 16 : 1, side = ev.shiftKey ? ev.deltaX || ev.deltaY : Math.abs(ev.deltaX) > Math.abs(ev.deltaY) ? ev.deltaX : 0;
    if (side) pan(side * unit / (right - left));
    else zoom(Math.exp(Math.min(Math.max(ev.deltaY * unit, -200), 200) * .0025), x);
  }, { passive: false });
  const pointers = new Map(), overview = document.getElementById("overview");
  let moved = 0;
  svg.addEventListener("pointerdown", ev => {
    if (ev.button) return;
    if (!pointers.size) moved = 0;
    pointers.set(ev.pointerId, place(ev));
    if (overview.contains(ev.target)) { moved = 9; jump(place(ev)[0]); }
  });
  const jump = x => {
    const t = extent[0] + (x - left) / (right - left) * (extent[1] - extent[0]), half = (view[1] - view[0]) / 2;
    look(t - half, t + half);
  };
  svg.addEventListener("pointermove", ev => {
    const before = pointers.get(ev.pointerId);
    if (!before) return;
    const now = place(ev), others = [...pointers].filter(([id]) => id !== ev.pointerId).map(([, p]) => p);
    moved += Math.abs(now[0] - before[0]);
    if (moved < 4) return;
    if (!svg.hasPointerCapture(ev.pointerId)) { try { svg.setPointerCapture(ev.pointerId); } catch { /* it is gone already */ } }
    svg.classList.add("dragged");
    pointers.set(ev.pointerId, now);
    if (overview.contains(ev.target) && !others.length) return jump(now[0]);
    if (others.length) {
      const o = others[0][0], was = Math.abs(before[0] - o), is = Math.abs(now[0] - o);
      if (was > 8 && is > 8) zoom(was / is, (now[0] + o) / 2);
    } else pan((before[0] - now[0]) / (right - left));
  });
  const lift = ev => { pointers.delete(ev.pointerId); if (!pointers.size) svg.classList.remove("dragged"); };
  svg.addEventListener("pointerup", lift);
  svg.addEventListener("pointercancel", lift);
  svg.addEventListener("click", ev => {
    if (moved >= 4) return;
    const flag = ev.target.closest(".flag.top"), of = ev.target.closest("[data-id]");
    const e = of ? document.getElementById("op" + of.dataset.id) : ev.target.closest(".op");
    if (flag) finding(num(flag, "n"));
    else choose(e, !!e);
  });

  const list = document.querySelector(".findings");
  if (list && list.children.length > 4) {
    const more = document.createElement("button");
    more.type = "button";
    more.className = "goto blame";
    more.textContent = `… and ${list.children.length - 4} more findings`;
    more.addEventListener("click", () => { list.classList.add("all"); more.remove(); });
    list.after(more);
  } else if (list) list.classList.add("all");

  document.body.classList.add("live");
  tools.hidden = panel.hidden = false;
  addEventListener("resize", measure);
  // On paper the picture has the size that it is drawn at without a script, and
  // shows what the reader looked at. Short orders are printed.
  const orders = [...document.querySelectorAll(".order-of")].filter(e => e.querySelectorAll("li").length <= 60);
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = orders.filter(e => !e.open);
    for (const e of opened) e.open = true;
    if (!touched) view = first.slice();
    resize(Number(data.width));
    layout();
  });
  addEventListener("afterprint", () => {
    for (const e of opened) e.open = false;
    measure();
    if (!touched) opening();
  });
  measure();
  opening();
})();
