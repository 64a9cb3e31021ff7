// The page was whole when it came. This makes charts readable round by round, and, where a server stands behind it,
// keeps it so: at each change the page is fetched again and the parts that differ are put in place.
"use strict";
(() => {
  const SOONEST_MS = 700; // between two fetches: a round may end several times a second
  const ALSO_EVERY_MS = 4000; // what runs grows without news; only while somebody sees the page
  const LOST_AFTER_MS = 3000; // a line that breaks and comes back at once is no news
  const byId = (id) => document.getElementById(id);
  const parts = () => document.querySelectorAll("[data-part]");

  // --- reading a chart with a finger, a mouse or the arrow keys ---------------------------------------
  // The words come from the table behind the chart, so both say the same.
  function readable(box) {
    const reader = document.createElement("div");
    const line = document.createElement("i");
    const read = document.createElement("p");
    const rows = () => [...document.querySelectorAll(`#${box.dataset.table}-rows tr[data-x]`)].reverse();
    const heads = () => [...document.querySelectorAll(`#${box.dataset.table}-rows th`)].map((head) => head.textContent);
    let at = -1;
    reader.className = "reader";
    reader.tabIndex = 0;
    reader.setAttribute("role", "slider");
    reader.setAttribute("aria-label", "Read round by round");
    reader.append(line);
    read.className = "read";
    read.setAttribute("aria-hidden", "true"); // the slider's own value says the same
    line.hidden = true;
    box.append(reader, read);

    function show(index) {
      const all = rows();
      if (!all.length) return;
      at = Math.max(0, Math.min(all.length - 1, index));
      const cells = [...all[at].cells].map((cell) => cell.textContent);
      const text = heads().map((head, place) => `${head.toLowerCase()} ${cells[place]}`).join(", ");
      line.hidden = false;
      line.style.left = `${100 * Number(all[at].dataset.x)}%`;
      read.textContent = text.charAt(0).toUpperCase() + text.slice(1);
      reader.setAttribute("aria-valuenow", cells[0].replace(/\D/g, ""));
      reader.setAttribute("aria-valuetext", read.textContent);
    }
    function settle() {
      const all = rows();
      const number = (row) => row.cells[0].textContent.replace(/\D/g, "");
      reader.hidden = !all.length;
      if (!all.length) return;
      reader.setAttribute("aria-valuemin", number(all[0]));
      reader.setAttribute("aria-valuemax", number(all[all.length - 1]));
      if (at < 0) {
        read.textContent = "Touch the chart, or go to it with Tab and the arrow keys, to read it round by round.";
        reader.setAttribute("aria-valuenow", number(all[all.length - 1]));
        reader.setAttribute("aria-valuetext", "the arrow keys read it");
      }
    }
    reader.addEventListener("pointermove", (event) => {
      const seen = reader.getBoundingClientRect();
      const share = (event.clientX - seen.left) / seen.width;
      const away = (row) => Math.abs(Number(row.dataset.x) - share);
      const all = rows();
      if (all.length) show(all.indexOf(all.reduce((best, row) => (away(row) < away(best) ? row : best))));
    });
    reader.addEventListener("keydown", (event) => {
      const all = rows().length;
      const from = at < 0 ? all : at;
      const to = { ArrowLeft: from - 1, ArrowDown: from - 1, ArrowRight: from + 1, ArrowUp: from + 1, PageUp: from + 10,
        PageDown: from - 10, Home: 0, End: all - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(to);
    });
    settle();
    return settle;
  }
  const settles = [...document.querySelectorAll(".reads")].map(readable);

  // --- what a server behind it says --------------------------------------------------------------------
  if (!("live" in document.body.dataset)) return;
  const asSent = new Map();
  let lookedAt = 0;
  let looks = 0;
  let planned = 0;
  let losing = 0;
  let line;

  function lookSoon() {
    if (planned) return;
    planned = setTimeout(() => { planned = 0; look(); }, Math.max(0, lookedAt + SOONEST_MS - Date.now()));
  }

  async function look() {
    lookedAt = Date.now();
    const mine = ++looks;
    try {
      const answer = await fetch(location.pathname, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      found();
      if (mine === looks) put(new DOMParser().parseFromString(text, "text/html"));
    } catch {
      lose();
    }
  }

  function put(fresh) {
    for (const part of parts()) {
      const twin = fresh.getElementById(part.id);
      if (!twin || twin.innerHTML === asSent.get(part.id)) continue;
      const [top, side] = [part.scrollTop, part.scrollLeft];
      part.replaceChildren(...twin.cloneNode(true).childNodes);
      part.className = twin.className;
      [part.scrollTop, part.scrollLeft] = [top, side];
      asSent.set(part.id, twin.innerHTML);
    }
    document.title = fresh.title;
    byId("icon").href = fresh.getElementById("icon").getAttribute("href");
    const [was, is] = [document.body.dataset, fresh.body.dataset];
    if (was.state !== is.state) byId("said").textContent = `${byId("word").textContent}: ${document.querySelector(".why").textContent}`;
    was.state = is.state;
    if ("over" in is) { was.over = ""; line.close(); } else delete was.over;
    for (const settle of settles) settle();
  }

  // A job that is over needs no server any more: what stands here is its report.
  function lose() {
    if ("over" in document.body.dataset) return;
    losing = losing || setTimeout(() => {
      if ("over" in document.body.dataset) return;
      const last = new Date(lookedAt).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      byId("lost").textContent = `No news since ${last}: the program that showed this page has ended. To see more: axon watch ${document.querySelector(".name").textContent}`;
      byId("lost").hidden = false;
      document.body.classList.add("lost");
      document.title = `? - ${document.querySelector(".name").textContent}`;
    }, LOST_AFTER_MS);
  }

  function found() {
    clearTimeout(losing);
    losing = 0;
    byId("lost").hidden = true;
    document.body.classList.remove("lost");
  }

  function listen() {
    line = new EventSource(`${location.pathname}events`);
    line.addEventListener("changed", lookSoon);
    line.addEventListener("over", look);
    line.onopen = lookSoon;
    line.onerror = () => {
      lose();
      if (line.readyState === EventSource.CLOSED && !("over" in document.body.dataset)) setTimeout(listen, LOST_AFTER_MS);
    };
  }

  for (const part of parts()) asSent.set(part.id, part.innerHTML);
  document.body.classList.add("is-live");
  listen();
  setInterval(() => { if (!document.hidden && !("over" in document.body.dataset)) lookSoon(); }, ALSO_EVERY_MS);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) lookSoon(); });
})();
