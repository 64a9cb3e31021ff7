// The page was whole when it came. This keeps it so: at each change the server's page is fetched again, and the parts
// that differ are put in place, so what is written where is decided in one place, the templates.
"use strict";
(() => {
  const TOKEN = "axon-token";
  const SOONEST_MS = 1000; // between two fetches: a round may end several times a second
  const ALSO_EVERY_MS = 5000; // time left and readings drift without news; only while somebody sees the page
  const HOW_TO_READ = "Touch a bar to read its day.";
  const LOST_AFTER_MS = 3000; // a line that breaks and comes back at once is no news
  const byId = (id) => document.getElementById(id);
  const parts = () => document.querySelectorAll("[data-part]");
  const asSent = new Map();

  // --- the token: from the address into this tab's memory, and out of the address bar -------------
  function takeToken() {
    const found = /^#token=([0-9a-f]{64})$/.exec(location.hash);
    if (!found) return;
    sessionStorage.setItem(TOKEN, found[1]);
    history.replaceState(null, "", location.pathname);
  }
  const token = () => sessionStorage.getItem(TOKEN);

  function allow() {
    const may = Boolean(token()) && !document.body.classList.contains("lost");
    for (const button of document.querySelectorAll("[data-post]")) button.disabled = !may;
    document.querySelector("#limits fieldset").disabled = !may;
    byId("read-only").hidden = Boolean(token());
  }

  // --- looking again ---------------------------------------------------------------------------------
  let lookedAt = 0;
  let looks = 0;
  let planned = 0;

  function lookSoon() {
    if (planned) return;
    planned = setTimeout(() => { planned = 0; look(); }, Math.max(0, lookedAt + SOONEST_MS - Date.now()));
  }

  async function look() {
    lookedAt = Date.now();
    const mine = ++looks;
    try {
      const answer = await fetch("/", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const text = await answer.text();
      found();
      if (mine === looks) put(new DOMParser().parseFromString(text, "text/html")); // a later look saw what came since
    } catch {
      lose();
    }
  }

  function put(fresh) {
    const focused = document.activeElement && document.activeElement.id;
    const chosen = document.querySelector(".stretch.chosen");
    for (const part of parts()) {
      const twin = fresh.getElementById(part.id);
      if (!twin || twin.innerHTML === asSent.get(part.id)) continue;
      if (part.id === "limits" && part.dataset.touched) continue; // never take away what somebody is writing
      part.replaceChildren(...twin.cloneNode(true).childNodes);
      asSent.set(part.id, twin.innerHTML);
    }
    if (chosen && byId(chosen.id)) byId(chosen.id).classList.add("chosen");
    allow();
    refocus(focused);
    document.title = fresh.title;
    byId("icon").href = fresh.getElementById("icon").getAttribute("href");
    document.querySelector("header.head").className = fresh.querySelector("header.head").className;
    const [was, is] = [document.body.dataset, fresh.body.dataset];
    if (was.state !== is.state || was.why !== is.why) {
      byId("said").textContent = `${byId("word").textContent}: ${document.querySelector(".why").textContent}`;
      Object.assign(was, { state: is.state, why: is.why });
    }
    draw();
  }

  // What had the focus has it again, or its neighbour where it is gone: the keyboard never falls back to the top.
  function refocus(id) {
    if (!id || (document.activeElement && document.activeElement !== document.body)) return;
    const again = byId(id) || (/^(pause-|finish|resume|stop)/.test(id) && document.querySelector("#acts button"));
    if (again) again.focus({ preventScroll: true });
  }

  // --- the line to the daemon --------------------------------------------------------------------------
  let losing = 0;

  function lose() {
    losing = losing || setTimeout(() => {
      const last = new Date(lookedAt).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      byId("lost").textContent = `No answer from the peer since ${last}. It may have stopped; it is looked for again. To start it: axon-peer run`;
      byId("lost").hidden = false;
      document.body.classList.add("lost");
      document.title = `? - ${document.querySelector(".name").textContent}`;
      allow();
    }, LOST_AFTER_MS);
  }

  function found() {
    clearTimeout(losing);
    losing = 0;
    byId("lost").hidden = true;
    document.body.classList.remove("lost");
    allow();
  }

  // Readings come twice a second while a job runs; only what people wait for is worth a look at once.
  let known = "";

  function hear(event) {
    const { state, why, sentence, until, jobs, limits, credits, findable, network, ledger } = JSON.parse(event.data);
    const work = jobs.map((job) => [job.job, job.round, job.frozen]);
    const seen = [sentence, work, limits, credits, findable, network, ledger];
    const news = JSON.stringify([state, why, until, document.hidden || seen]); // a hidden tab shows its title and icon
    if (news !== known) lookSoon();
    known = news;
  }

  function listen() {
    const line = new EventSource("/api/events");
    line.addEventListener("status", hear);
    line.onopen = lookSoon;
    line.onerror = () => {
      lose();
      if (line.readyState === EventSource.CLOSED) setTimeout(listen, LOST_AFTER_MS);
    };
  }

  // --- orders ------------------------------------------------------------------------------------------
  async function order(what, body, place, from) {
    place.classList.remove("no");
    place.textContent = "";
    let no = "";
    try {
      const answer = await fetch(`/api/${what}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Axon-Token": token() || "" },
        body: JSON.stringify(body),
      });
      if (!answer.ok) {
        const { error } = await answer.json();
        no = [error.message, error.fix].filter(Boolean).join(". Mend it: ");
        if (answer.status === 403) sessionStorage.removeItem(TOKEN);
      }
    } catch {
      no = "The peer did not answer.";
    }
    place.classList.toggle("no", Boolean(no));
    place.textContent = no;
    if (!no && what === "limits") { delete limits.dataset.touched; asSent.delete("limits"); }
    await look();
    refocus(from);
    return !no;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-post]");
    if (button) {
      const body = button.dataset.post === "pause" ? { seconds: Number(button.dataset.seconds) || null } : {};
      for (const other of document.querySelectorAll("[data-post]")) other.disabled = true;
      order(button.dataset.post, body, byId("answer"), button.id);
    }
    const stretch = event.target.closest(".stretch");
    if (stretch) read(stretch);
  });

  const limits = byId("limits");
  limits.addEventListener("input", () => { limits.dataset.touched = "yes"; byId("saved").textContent = ""; });
  limits.addEventListener("submit", async (event) => {
    event.preventDefault();
    const changed = {};
    for (const field of limits.querySelectorAll("input, textarea")) {
      if (field.type === "checkbox") {
        if (field.checked !== field.defaultChecked) changed[field.name] = field.checked;
      } else if (field.value !== field.defaultValue) {
        const lines = field.value.split("\n").map((line) => line.trim()).filter(Boolean);
        changed[field.name] = field.type === "number" ? Number(field.value) : lines;
      }
    }
    const place = byId("saved");
    if (!Object.keys(changed).length) { place.textContent = "Nothing was changed."; return; }
    if (await order("limits", changed, place, "save")) place.textContent = "Saved.";
  });

  // --- the ribbon ----------------------------------------------------------------------------------------
  function read(stretch) {
    for (const other of document.querySelectorAll(".stretch.chosen")) other.classList.remove("chosen");
    stretch.classList.add("chosen");
    const said = stretch.getAttribute("aria-label");
    if (byId("read").textContent !== said) byId("read").textContent = said; // the same again would be read aloud again
  }
  document.addEventListener("focusin", (event) => {
    if (event.target.matches(".stretch")) read(event.target);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches(".stretch")) return;
    const all = [...document.querySelectorAll(".stretch")];
    const at = all.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (!all[to]) return;
    event.target.setAttribute("tabindex", "-1");
    all[to].setAttribute("tabindex", "0");
    all[to].focus();
  });

  // --- credits of thirty days ------------------------------------------------------------------------------
  let chart = null;
  let drawn = "";

  function draw() {
    const rows = [...document.querySelectorAll("#days [data-day]")].reverse();
    const earned = rows.map((row) => Number(row.dataset.earned));
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const place = byId("chart");
    place.hidden = !earned.some((one) => one > 0);
    byId("chart-read").hidden = place.hidden;
    byId("no-chart").hidden = !place.hidden;
    const key = JSON.stringify([earned, dark, place.clientWidth, place.clientHeight]);
    if (place.hidden || key === drawn) return;
    drawn = key;
    if (chart) chart.destroy();
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: colour("muted"), grid: { stroke: colour("edge"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    // As many digits as tell one tick from the next: the first job of a small machine earns less than a thousandth.
    const most = Math.max(...earned);
    const digits = Math.min(8, Math.max(0, 2 - Math.floor(Math.log10(most))));
    const credits = (amount) => (amount === 0 ? "0" : amount >= 1000 ? amount.toLocaleString("en") : String(Number(amount.toFixed(digits))));
    const width = 16 + 7 * Math.max(...[1, 0.5, 0.25, 0.2].map((part) => credits(most * part).length));
    const day = (at) => (rows[at] ? rows[at].dataset.day : "");
    chart = new uPlot({
      width: place.clientWidth, height: place.clientHeight, legend: { show: false }, padding: [8, 6, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: { x: { time: false, range: [-0.6, rows.length - 0.4] }, y: { range: (_, least, most) => [0, most * 1.08 || 1] } },
      axes: [
        { ...axis, grid: { show: false }, size: 26, space: 60, incrs: [7], values: (_, ticks) => ticks.map(day) },
        { ...axis, size: width, gap: 8, label: "credits", labelSize: 18, labelFont: axis.font, values: (_, ticks) => ticks.map(credits) },
      ],
      series: [{}, { fill: colour("blue"), stroke: colour("blue"), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.72, 40] }) }],
      hooks: { setCursor: [(plot) => { byId("chart-read").textContent = plot.cursor.idx == null ? HOW_TO_READ : `${day(plot.cursor.idx)}: ${credits(earned[plot.cursor.idx])} credits`; }] },
    }, [rows.map((_, place) => place), earned], place);
  }

  takeToken();
  addEventListener("hashchange", () => { takeToken(); allow(); });
  for (const part of parts()) asSent.set(part.id, part.innerHTML);
  document.body.classList.add("live");
  allow();
  draw();
  listen();
  setInterval(() => { if (!document.hidden) lookSoon(); }, ALSO_EVERY_MS);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) lookSoon(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(draw).observe(byId("chart"));
})();
