"use strict";
// A reader of the page: it looks, presses keys, turns the wheel, drags, and
// writes what it found into the document, for the test to read.
(() => {
  // The test runs in virtual time, which no frame holds up.
  window.requestAnimationFrame = done => setTimeout(done, 1);
  const checks = [], check = (name, ok, saw) => checks.push({ Name: name, OK: !!ok, Saw: String(saw) });
  const svg = document.getElementById("picture"), narrow = innerWidth < 640;
  const marks = () => [...svg.querySelectorAll("rect[x],line[x1],g[transform],path[transform],.doubt[x]")].filter(e => !e.closest(".names,.legend,#overview,#ticks,defs"));
  const shape = e => ["x", "width", "x1", "x2", "transform"].map(k => e.getAttribute(k)).join(" ");
  const drawn = new Map(marks().filter(e => !e.closest("[display=none]")).map(e => [e, shape(e)]));
  // Labels stand in the same place where the browser's font gives them the same room.
  const labels = new Map([...svg.querySelectorAll(".op .label,.bar .label")].filter(e => e.textContent && !e.closest("[display=none]")).map(e => [e, [e.textContent, e.getAttribute("class"), e.getAttribute("x")]]));
  const ticksDrawn = [...svg.querySelectorAll("#ticks text")].map(e => e.textContent).join();
  addEventListener("error", ev => check("no error", false, ev.message));

  const frame = () => new Promise(done => setTimeout(done, 5));
  const view = () => svg.dataset.view.split(" ").map(Number);
  const size = () => view()[1] - view()[0];
  const num = (e, k) => Number(e.dataset[k]);
  const near = (a, b) => Math.abs(a - b) <= 1e-6 * Math.max(Math.abs(a), Math.abs(b), 1);
  const same = (a, b) => near(a[0], b[0]) && near(a[1], b[1]);
  const onScreen = e => {
    const box = e.getBoundingClientRect(), canvas = document.querySelector(".canvas").getBoundingClientRect();
    return box.width > 0 && box.left >= canvas.left - 12 && box.right <= canvas.right + 12;
  };
  const press = async (key, target = document.body, more = {}) => {
    const ev = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
    target.dispatchEvent(ev);
    await frame();
    return ev;
  };
  const box = () => svg.getBoundingClientRect();
  const pointer = (type, x, id = 1, target = svg) => target.dispatchEvent(new PointerEvent(type, { pointerId: id, pointerType: "touch", clientX: x, clientY: box().top + 90, bubbles: true, cancelable: true, button: type === "pointermove" ? -1 : 0 }));

  async function visit() {
    await frame();
    const extent = [Number(svg.dataset.from), Number(svg.dataset.to)], opening = view();
    check("the script runs", document.body.classList.contains("live"), document.body.className);
    check("nothing is wider than the page", document.documentElement.scrollWidth <= innerWidth, document.documentElement.scrollWidth + " of " + innerWidth);
    check("the window is as wide as was asked for", narrow ? innerWidth === 390 : innerWidth === 1280, innerWidth);
    const bad = [...svg.querySelectorAll(".op.violates,.flag.breaks.top")].filter(e => !e.closest(".legend"));
    check("there is a violation", bad.length > 0, bad.length);
    for (const e of bad) check("the violation is in view: " + (e.id || "flag"), !e.closest("[display=none]") && onScreen(e), JSON.stringify(e.getBoundingClientRect()));
    for (const e of svg.querySelectorAll(".op.violates")) check("nobody has to scroll to it: " + e.id, e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().bottom <= innerHeight, JSON.stringify(e.getBoundingClientRect()));
    const texts = [...svg.querySelectorAll(".op .label")].filter(e => e.textContent && !e.closest("[display=none]"));
    check("labels are shown", texts.length > 0, texts.length);

    // Keys.
    await press("+");
    const closer = size();
    check("plus zooms in", closer < (opening[1] - opening[0]) * .99, closer);
    await press("-");
    check("minus zooms out again", near(size(), closer * 1.5), size());
    await press("0");
    check("zero shows all", same(view(), extent), view());
    await press("+");
    const before = view();
    await press("ArrowRight");
    check("right pans", view()[0] > before[0] && near(size(), before[1] - before[0]), view());
    await press("ArrowLeft");
    check("left pans back", same(view(), before), view());
    for (let i = 0; i < 8; i++) await press("ArrowLeft");
    check("nobody pans out of the history", near(view()[0], extent[0]), view());
    for (let i = 0; i < 45; i++) await press("+");
    check("zoom ends where numbers can still be told apart", near(size(), Math.max(20, (extent[1] - extent[0]) / 1e6)), size());
    await press("v");
    check("v goes back to the violation", same(view(), opening), view());
    const help = document.getElementById("help");
    await press("?");
    check("? opens the keys", !help.hidden, help.hidden);
    await press("Escape");
    check("Esc closes them", help.hidden, help.hidden);
    const typed = await press("n", document.body, { ctrlKey: true });
    check("the browser keeps its own keys", !typed.defaultPrevented, typed.defaultPrevented);

    // The panel, and the order of the operations.
    const panel = document.getElementById("panel"), ops = [...svg.querySelectorAll(".op[tabindex]")];
    if (svg.querySelector(".flag.top")) {
      await press("n");
      check("n tells the first finding", panel.textContent.includes("finding 1"), panel.textContent);
      await press("p");
      check("p tells the last one", panel.textContent.includes("finding"), panel.textContent);
      document.querySelector(".goto").click();
      await frame();
      check("a finding can be chosen", panel.textContent.includes("finding 1"), panel.textContent);
    }
    await press("0");
    await press("+");
    ops[0].focus({ preventScroll: true });
    if (document.activeElement !== ops[0]) { await press("0"); ops[0].focus(); }
    check("an operation takes the focus", document.activeElement === ops[0], document.activeElement && document.activeElement.id);
    check("the panel tells it", panel.textContent.includes(ops[0].querySelector(".label").dataset.t), panel.textContent);
    let all = true;
    for (const e of ops.slice(1, 20)) {
      await press("Tab", document.activeElement);
      if (document.activeElement !== e || !onScreen(e.querySelector(".body"))) { all = e.id; break; }
    }
    check("Tab goes through them in order, each in view", all === true, all + " " + (document.activeElement && document.activeElement.id));
    await press("Tab", document.activeElement, { shiftKey: true });
    check("Shift+Tab goes back", document.activeElement === ops[Math.min(ops.length, 20) - 2], document.activeElement && document.activeElement.id);
    await press("Escape", document.activeElement);
    check("Esc lets go", !document.activeElement.closest(".op") && !svg.querySelector(".chosen"), document.activeElement.outerHTML.slice(0, 80));
    ops[ops.length - 1].dispatchEvent(new MouseEvent("click", { bubbles: true }));
    await frame();
    check("a tap chooses", svg.querySelector(".chosen") === ops[ops.length - 1], svg.querySelector(".chosen"));
    check("the panel is seen", panel.getBoundingClientRect().height > 20 && panel.getBoundingClientRect().bottom <= innerHeight + 1, JSON.stringify(panel.getBoundingClientRect()));

    const landing = svg.querySelector(".landing.violates");
    if (landing) {
      landing.querySelector("circle").dispatchEvent(new MouseEvent("click", { bubbles: true }));
      await frame();
      check("a write at the storage leads to its operation", svg.querySelector(".chosen").id === "op" + landing.dataset.id, svg.querySelector(".chosen").id);
    }

    // Wheel, drag, pinch.
    await press("v");
    const middle = box().left + box().width * .6;
    const at = x => { const left = Number(svg.querySelector("#canvas rect").getAttribute("x")), wide = Number(svg.querySelector("#canvas rect").getAttribute("width")); return view()[0] + (x - box().left - left) / wide * size(); };
    await press("0");
    let t = at(middle), was = size();
    svg.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, clientX: middle, clientY: box().top + 90, bubbles: true, cancelable: true }));
    await frame();
    check("the wheel zooms", size() < was, size());
    check("the wheel zooms about the pointer", Math.abs(at(middle) - t) < size() * .01, at(middle) + " was " + t);
    t = at(middle);
    was = size();
    pointer("pointerdown", middle);
    pointer("pointermove", middle - 20);
    pointer("pointermove", middle - 40);
    pointer("pointerup", middle - 40);
    await frame();
    check("what is dragged stays under the finger", Math.abs(at(middle - 40) - t) < size() * .01 && near(size(), was), at(middle - 40) + " was " + t);
    pointer("pointerdown", middle - 40, 1);
    pointer("pointerdown", middle + 40, 2);
    pointer("pointermove", middle - 60, 1);
    pointer("pointermove", middle + 60, 2);
    pointer("pointerup", middle - 60, 1);
    pointer("pointerup", middle + 60, 2);
    await frame();
    check("two fingers zoom", Math.abs(size() / was - 80 / 120) < .02, size() / was);
    const gutter = new WheelEvent("wheel", { deltaY: 100, clientX: box().left + 20, clientY: box().top + 90, bubbles: true, cancelable: true });
    svg.dispatchEvent(gutter);
    check("over the names the page scrolls", !gutter.defaultPrevented, gutter.defaultPrevented);

    // The order.
    if (svg.querySelector(".dot")) {
      const shown = () => getComputedStyle(svg.querySelector(".ops ~ .order")).display !== "none";
      check("the order is shown", shown(), shown());
      await press("l");
      check("l hides it", !shown(), shown());
      await press("l");
      check("l shows it again", shown(), shown());
    }

    // Print, and the two drawings of one picture.
    await press("v");
    dispatchEvent(new Event("beforeprint"));
    check("on paper it is as wide as it was drawn", svg.viewBox.baseVal.width === Number(svg.dataset.width), svg.viewBox.baseVal.width);
    const wrong = [...drawn].filter(([e, s]) => {
      const now = shape(e).match(/-?[\d.]+/g) || [], then = s.match(/-?[\d.]+/g) || [];
      return e.closest("[display=none]") || now.length !== then.length || now.some((n, i) => Math.abs(n - then[i]) > .21);
    });
    check("the script draws what was drawn", drawn.size > 20 && !wrong.length, wrong.length + " of " + drawn.size + ": " + wrong.slice(0, 3).map(([e, s]) => e.outerHTML.slice(0, 200) + " was " + s).join("\n"));
    const alike = [...labels].filter(([e, [text, kind]]) => e.textContent === text && e.getAttribute("class") === kind);
    check("labels are where they were", alike.length > labels.size / 2 && alike.every(([e, was]) => Math.abs(e.getAttribute("x") - was[2]) < .21), alike.length + " of " + labels.size);
    const ticks = [...svg.querySelectorAll("#ticks text")].map(e => e.textContent).join();
    check("and the same axis", ticks === ticksDrawn, ticks + " was " + ticksDrawn);
    dispatchEvent(new Event("afterprint"));
    await frame();
    check("after that it is as it was", same(view(), opening) && svg.viewBox.baseVal.width < innerWidth, view());
  }

  const end = () => {
    const pre = document.createElement("pre");
    pre.id = "visited";
    pre.textContent = JSON.stringify(checks);
    parent.document.body.append(pre);
  };
  addEventListener("load", () => visit().catch(e => check("no error", false, e.stack)).then(end));
})();
