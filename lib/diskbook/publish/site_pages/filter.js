// Shows the runs that fit what is chosen; without it all of them are shown. Asks nobody.
"use strict";
const form = document.getElementById("filter");
const rows = [...document.querySelectorAll("#all tr")];
function show() {
  const chosen = new FormData(form);
  const words = chosen.get("words").toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const fits = ["scenario", "provenance", "region"].every(key => !chosen.get(key) || row.dataset[key] === chosen.get(key));
    row.hidden = !(fits && words.every(word => text.includes(word)));
  }
  const number = rows.filter(row => !row.hidden).length;
  form.querySelector("output").value = `${number} of ${rows.length} shown`;
}
form.addEventListener("input", show);
form.addEventListener("submit", event => event.preventDefault());
form.hidden = false;
show();
