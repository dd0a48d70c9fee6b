"""The frame of the report: style, filters, head and foot of the page. No network, no library."""

OPENING = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Which claims came out</title>
<style>
:root {
  color-scheme: light dark;
  --text: #1c1e21; --muted: #5d6570; --page: #ffffff; --card: #f5f6f8; --line: #dde1e6;
  --holds: #1a7f4b; --fails: #c2352b; --undecided: #8a6400; --missing: #6b7280; --link: #1d5fbf;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e6e8eb; --muted: #9aa3af; --page: #14171b; --card: #1d2126; --line: #323840;
    --holds: #4cc38a; --fails: #ff7b72; --undecided: #e0b341; --missing: #9ca3af; --link: #7fb2ff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 68rem; padding: 1.5rem 1.25rem 4rem; color: var(--text);
  background: var(--page); font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 3rem 0 1rem; }
h2 small { color: var(--muted); font-weight: normal; white-space: nowrap; }
h3 { margin: 0; font-size: 1.05rem; }
a { color: var(--link); }
code { font-size: .9em; background: var(--card); padding: .1em .3em; border-radius: 4px; }
.totals { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 1rem 0; color: var(--muted); }
.totals b { font-size: 1.6rem; color: var(--text); }
.totals .holds b { color: var(--holds); } .totals .fails b { color: var(--fails); }
.totals .undecided b { color: var(--undecided); }
nav {
  position: sticky; top: 0; z-index: 1; background: var(--page); padding: .6rem 0;
  border-bottom: 1px solid var(--line); display: flex; flex-wrap: wrap; gap: .4rem 1.2rem;
}
nav fieldset { border: 0; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem; }
nav legend { float: left; padding: .25rem .5rem .25rem 0; color: var(--muted); }
button {
  font: inherit; font-size: .9rem; padding: .2rem .7rem; border-radius: 999px; cursor: pointer;
  border: 1px solid var(--line); background: var(--card); color: var(--text);
}
button[aria-pressed=true] { background: var(--text); color: var(--page); }
.scroll { overflow-x: auto; margin-top: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .7rem .4rem 0; }
th { color: var(--muted); font-weight: 500; }
th, td:nth-child(-n+3) { white-space: nowrap; }
tbody tr { border-top: 1px solid var(--line); }
.verdict { font-weight: 600; font-size: .85rem; white-space: nowrap; }
.verdict.holds { color: var(--holds); } .verdict.fails { color: var(--fails); }
.verdict.undecided { color: var(--undecided); } .verdict.missing { color: var(--missing); }
article {
  background: var(--card); border-radius: 12px; padding: 1.1rem 1.25rem; margin: 0 0 1.25rem;
  scroll-margin-top: 6rem;
}
article > p { margin: .2rem 0 .8rem; color: var(--muted); }
img { max-width: 100%; height: auto; border-radius: 6px; background: #fff; padding: .5rem; }
.facts { font-size: .88rem; }
.claims { list-style: none; margin: 0; padding: 0; }
.claims li { border-top: 1px solid var(--line); padding: .6rem 0; }
.claims p { margin: .1rem 0; } cite { color: var(--muted); font-size: .88rem; }
dl {
  display: grid; grid-template-columns: max-content 1fr; gap: 0 .8rem; margin: .2rem 0 0;
  font-size: .88rem;
}
dt { color: var(--muted); } dd { margin: 0; }
footer { color: var(--muted); font-size: .88rem; }
[hidden] { display: none !important; }
@media (max-width: 40rem) {
  table, tbody, tr, td { display: block; } thead { display: none; }
  tbody tr { padding: .5rem 0; } td { padding: 0; }
  td:nth-child(2) { display: none; }
}
</style>
</head>
<body>
<h1>Which claims of the papers came out</h1>
<p>Every claim was judged by the program over stored tables; the measured number stands beside it.
A claim that fails is a result, not an error.</p>
<nav>
<fieldset data-filter="paper"><legend>paper</legend>
<button aria-pressed="true" value="">all</button><button aria-pressed="false" value="A">A</button>
<button aria-pressed="false" value="B">B</button><button aria-pressed="false" value="C">C</button>
<button aria-pressed="false" value="D">D</button></fieldset>
<fieldset data-filter="verdict"><legend>verdict</legend>
<button aria-pressed="true" value="">all</button>
<button aria-pressed="false" value="holds">holds</button>
<button aria-pressed="false" value="fails">fails</button>
<button aria-pressed="false" value="undecided">undecided</button>
<button aria-pressed="false" value="missing">not run</button></fieldset>
</nav>
"""

CLOSING = """
<script>
const chosen = { paper: "", verdict: "" };
const matches = ({ dataset }, kind) =>
  !chosen[kind] || !(kind in dataset) || dataset[kind].split(" ").includes(chosen[kind]);
function show() {
  for (const element of document.querySelectorAll("tbody tr, article, .claims li, section"))
    element.hidden = !(matches(element, "paper") && matches(element, "verdict"));
  for (const section of document.querySelectorAll("section"))
    section.hidden = ![...section.querySelectorAll("article")].some((article) => !article.hidden);
}
for (const fieldset of document.querySelectorAll("fieldset"))
  fieldset.addEventListener("click", ({ target }) => {
    if (target.tagName !== "BUTTON") return;
    chosen[fieldset.dataset.filter] = target.value;
    for (const button of fieldset.querySelectorAll("button"))
      button.setAttribute("aria-pressed", button === target);
    show();
  });
</script>
</body>
</html>
"""
