// A chart is read round by round with a finger, a mouse or the arrow keys.
"use strict";
(() => {
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
  document.addEventListener("fresh", () => { for (const settle of settles) settle(); });
})();
