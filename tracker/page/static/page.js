// The page was whole when it came. Every few seconds the server's page is fetched again and the parts that differ are
// put in place: what is written where is decided in one place, the template.
"use strict";
(() => {
  const EVERY_MS = 5000;
  const byId = (id) => document.getElementById(id);
  let answered = Date.now();

  async function look() {
    if (document.hidden) return;
    try {
      const answer = await fetch("/", { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      put(new DOMParser().parseFromString(await answer.text(), "text/html"));
      answered = Date.now();
      byId("lost").hidden = true;
      document.body.classList.remove("lost");
    } catch {
      const last = new Date(answered).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      byId("lost").textContent = `No answer from the tracker since ${last}. It is looked for again. To start it: axon-tracker run`;
      byId("lost").hidden = false;
      document.body.classList.add("lost");
      document.title = `? - ${document.querySelector(".name").textContent}`;
    }
  }

  function put(fresh) {
    for (const part of document.querySelectorAll("[data-part]")) {
      const twin = fresh.getElementById(part.id);
      if (!twin) { part.remove(); continue; }
      part.className = twin.className;
      if (twin.innerHTML !== part.innerHTML) part.replaceChildren(...twin.cloneNode(true).childNodes);
    }
    document.title = fresh.title;
  }

  document.body.classList.add("live");
  setInterval(look, EVERY_MS);
  document.addEventListener("visibilitychange", look);
})();
