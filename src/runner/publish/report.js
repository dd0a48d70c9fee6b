// The filters: what is shown matches every list in which something is chosen.
const nav = document.querySelector("nav");
const filters = [...nav.querySelectorAll("select")];
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const fits = ({ dataset }) =>
  filters.every(({ name, value }) => !value || (dataset[name] ?? "").split(" ").includes(value));
const shownIn = (element, selector) => all(selector, element).some((each) => !each.hidden);

function show() {
  const filtered = filters.some(({ value }) => value);
  for (const filter of filters) filter.classList.toggle("chosen", filter.value !== "");
  for (const claim of all(".all tbody tr, .claims > li")) claim.hidden = !fits(claim);
  for (const result of all(".result")) {
    const claims = ".claims > li";
    result.hidden = result.querySelector(claims) ? !shownIn(result, claims) : !fits(result);
    const fold = result.closest(".other");
    if (fold) {
      fold.hidden = result.hidden;
      fold.open = filtered && !result.hidden;
    }
  }
  for (const article of all("article"))
    article.hidden = article.querySelector(".result") ? !shownIn(article, ".result") : !fits(article);
  for (const section of all("section")) section.hidden = !shownIn(section, "article");
  const rows = all(".all tbody tr");
  const shown = rows.filter((row) => !row.hidden).length;
  nav.querySelector("output").value = `${shown} of ${rows.length} rows`;
}

// A link to what is folded opens it.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const fold = target?.closest(".other");
  if (fold && !fold.open) {
    fold.open = true;
    target.scrollIntoView();
  }
}

nav.hidden = false;
nav.addEventListener("change", show);
nav.querySelector("button").addEventListener("click", () => {
  for (const filter of filters) filter.value = "";
  show();
});
addEventListener("hashchange", unfold);
show();
unfold();
