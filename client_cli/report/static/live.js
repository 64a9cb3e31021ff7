// The page was whole when it came. Where a server is behind it, this keeps it as new as what is shown: at each change the
// page is fetched again and the parts that differ are put in place. Each page that is kept so has this and its own script.
"use strict";
(() => {
  const SOONEST_MS = 700; // between two fetches: a round may end several times a second
  const ALSO_EVERY_MS = 4000; // what runs grows without news; only while somebody sees the page
  const LOST_AFTER_MS = 3000; // a line that breaks and comes back at once is no news
  const byId = (id) => document.getElementById(id);
  const parts = () => document.querySelectorAll("[data-part]");
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
      const answer = await fetch(`${location.pathname}${location.search}`, { cache: "no-store" });
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
      const focused = part.contains(document.activeElement) && document.activeElement.id;
      if ("rows" in part.dataset) putRows(part, twin);
      else part.replaceChildren(...twin.cloneNode(true).childNodes);
      part.className = twin.className;
      [part.scrollTop, part.scrollLeft] = [top, side];
      if (focused && document.activeElement.id !== focused) byId(focused)?.focus({ preventScroll: true });
      asSent.set(part.id, twin.innerHTML);
    }
    document.title = fresh.title;
    byId("icon").href = fresh.getElementById("icon").getAttribute("href");
    const [was, is] = [document.body.dataset, fresh.body.dataset];
    if (was.state !== is.state) byId("said").textContent = `${byId("word").textContent}: ${document.querySelector(".why").textContent}`;
    was.state = is.state;
    if ("over" in is) { was.over = ""; line.close(); } else { delete was.over; hear(); }
    document.dispatchEvent(new Event("fresh"));
  }

  // A row that says the same stays as it is, with what is selected in it.
  function putRows(part, twin) {
    const before = new Map([...part.children].map((row) => [row.id, row]));
    let next = part.firstElementChild;
    for (const fresh of twin.children) {
      let row = before.get(fresh.id);
      if (!row || !row.isEqualNode(fresh)) {
        const changed = fresh.cloneNode(true);
        if (row === next && row) next = row.nextElementSibling;
        row?.remove();
        row = changed;
      }
      if (row === next) next = row.nextElementSibling;
      else part.insertBefore(row, next);
    }
    while (next) {
      const gone = next;
      next = next.nextElementSibling;
      gone.remove();
    }
  }

  // A job that is over needs no server any more: what the page shows is its report.
  function lose() {
    if ("over" in document.body.dataset) return;
    losing = losing || setTimeout(() => {
      if ("over" in document.body.dataset) return;
      const last = new Date(lookedAt).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      byId("lost").textContent = `No news since ${last}: the program that showed this page has ended. To see more: ${document.body.dataset.again}`;
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
      if (line.readyState === EventSource.CLOSED && !("over" in document.body.dataset)) setTimeout(hear, LOST_AFTER_MS);
    };
  }

  // A browser has six lines to a server: tabs that share one hold theirs only while somebody sees them.
  const rests = () => document.hidden && "shared" in document.body.dataset;
  function hear() {
    if (!rests() && line.readyState === EventSource.CLOSED) listen();
  }

  for (const part of parts()) asSent.set(part.id, part.innerHTML);
  document.body.classList.add("is-live");
  listen();
  setInterval(() => { if ((rests() || !document.hidden) && !("over" in document.body.dataset)) lookSoon(); }, ALSO_EVERY_MS);
  document.addEventListener("visibilitychange", () => {
    if (rests()) line.close();
    if (document.hidden) return;
    lookSoon();
    if (!("over" in document.body.dataset)) hear();
  });
})();
