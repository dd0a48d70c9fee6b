// The filters of the table of claims. The address keeps them: claims.html#verdict=fails&paper=B
const form = document.getElementById("filters");
const groups = [...document.querySelectorAll(".all tbody")];
const rows = [...document.querySelectorAll(".all tr[data-verdict]")];
const names = ["paper", "verdict", "kind", "scale", "source"];

function show() {
  const wanted = Object.fromEntries(new FormData(form));
  const words = wanted.words.toLowerCase().split(/\s+/);
  for (const row of rows) {
    const fits = names.every((name) => !wanted[name] || row.dataset[name] === wanted[name]);
    const chosen = wanted.scale || wanted.source || "main" in row.dataset;
    const text = row.textContent.toLowerCase();
    row.hidden = !(fits && chosen && words.every((word) => text.includes(word)));
  }
  for (const group of groups) group.hidden = !group.querySelector("tr[data-verdict]:not([hidden])");
  const count = rows.filter((row) => !row.hidden).length;
  form.querySelector("output").textContent = `${count} of ${rows.length}`;
}

function follow() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1)))
    if (form.elements[name]) form.elements[name].value = value;
  show();
}

form.hidden = false;
form.addEventListener("input", () => {
  const chosen = [...new FormData(form)].filter(([, value]) => value);
  history.replaceState(null, "", "#" + new URLSearchParams(chosen));
  show();
});
form.addEventListener("reset", () => setTimeout(() => form.dispatchEvent(new Event("input"))));
form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", follow);
follow();
