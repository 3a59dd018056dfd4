"""How the status page looks and keeps itself fresh; nothing comes from elsewhere.

Style and script are the only ones that the browser accepts: their hashes are in the
policy. What is visible is asked for again every few seconds, a hidden page never.
"""

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html import escape

from twisted.web.server import Request
from twisted.web.template import Tag, flattenString, tags

from api_exporter.serving.page import TextPage, keep_at_home
from api_exporter.web.status import formatting
from api_exporter.web.ttl_cache import TTLCache

STYLE = """
:root { color-scheme: light dark;
  --page: #f7f7f5; --card: #ffffff; --ink: #1d2327; --soft: #5d666d; --line: #e3e4e1;
  --good: #18794a; --warn: #8f5f00; --bad: #b3261e; --none: #6b747b;
  --connected: #3574b5; --disconnected: #cdd3d9; --link: #1f5f9e; }
@media (prefers-color-scheme: dark) { :root {
  --page: #15181b; --card: #1d2125; --ink: #e4e7e9; --soft: #9aa3aa; --line: #30363b;
  --good: #5fc48d; --warn: #dcab4a; --bad: #f0857c; --none: #8d969d;
  --connected: #5b9bd9; --disconnected: #474f57; --link: #86b8ea; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 1.5rem 1.25rem 3rem;
  background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
a { color: var(--link); }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; font-weight: 600;
  text-wrap: balance; }
h2 { margin: 0 0 .75rem; font-size: 1rem; font-weight: 600; }
p { margin: .5rem 0 0; max-width: 52rem; }
code, .path { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  font-size: .92em; }
section { margin-top: 1rem; padding: 1.1rem 1.25rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; }
.top, .legend, footer, #lost { color: var(--soft); font-size: .87rem; }
.top { display: flex; flex-wrap: wrap; gap: 0 1rem; justify-content: space-between; }
.good { --tone: var(--good); } .warn { --tone: var(--warn); }
.bad { --tone: var(--bad); } .none { --tone: var(--none); }
.verdict { border-left: 5px solid var(--tone); }
.verdict h1 { color: var(--tone); }
.verdict .why { font-weight: 600; }
.state { white-space: nowrap; }
.state::before { content: ""; display: inline-block; width: .55em; height: .55em;
  margin-right: .45em; border-radius: 50%; background: var(--tone); }
.findings { margin: 0; padding: 0; list-style: none; }
.findings li { display: grid; grid-template-columns: 6rem 1fr; gap: 0 .9rem;
  padding: .34rem 0; align-items: baseline; }
.findings li + li { border-top: 1px solid var(--line); }
.findings b { font-weight: 600; }
.findings .when { color: var(--soft); }
.findings .when, .findings a { white-space: nowrap; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr));
  gap: .9rem 1.5rem; margin: 0; }
dt { color: var(--soft); font-size: .8rem; }
dd { margin: 0; }
dd small { display: block; color: var(--soft); font-size: .8rem; }
figure { margin: 0; }
figcaption .when { color: var(--soft); }
figcaption { display: flex; flex-wrap: wrap; gap: 0 1.25rem; margin-bottom: .6rem; }
.key::before { content: ""; display: inline-block; width: .7em; height: .7em;
  margin-right: .45em; border-radius: 2px; background: currentColor; }
.key.connected::before { background: var(--connected); }
.key.disconnected::before { background: var(--disconnected); }
.plot { display: grid; grid-template-columns: auto 1fr; gap: .25rem .6rem;
  color: var(--soft); font-size: .75rem; line-height: 1; }
.plot svg { display: block; width: 100%; height: 9rem;
  border-bottom: 1px solid var(--soft); }
.plot .y, .plot .x { display: flex; justify-content: space-between; }
.plot .y { flex-direction: column; text-align: right; }
.plot .x { grid-column: 2; padding-top: .2rem; }
path.connected { fill: var(--connected); }
path.disconnected { fill: var(--disconnected); }
path.grid { fill: none; stroke: var(--card); stroke-opacity: .55;
  vector-effect: non-scaling-stroke; }
.box { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .34rem .9rem .34rem 0; text-align: left; vertical-align: baseline; }
th { color: var(--soft); font-size: .8rem; font-weight: 400; }
tbody tr { border-top: 1px solid var(--line); }
td.n, th.n { text-align: right; white-space: nowrap; }
td:last-child, th:last-child { padding-right: 0; }
tr.off td { color: var(--soft); }
tr.because { border-top: 0; }
tr.because td { padding-top: 0; color: var(--soft); }
tr.because strong { display: block; color: var(--tone); font-weight: 500; }
.concern { color: var(--warn); }
.legend { margin-top: .8rem; }
.legend b { font-weight: 600; }
footer { margin-top: 1.25rem; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; }
#lost { color: var(--bad); margin: .75rem 0 0; }
@media (max-width: 44rem) {
  body { padding: 1rem .75rem 2rem; }
  section { padding: .9rem; }
  h1 { font-size: 1.3rem; }
  .findings li { grid-template-columns: 1fr; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  tbody tr { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .75rem;
    padding: .4rem 0; }
  tbody tr.because { padding-top: 0; }
  td, td.n { padding: 0; white-space: normal; color: var(--soft); font-size: .85rem; }
  td.lead { flex: 1 1 60%; color: var(--ink); font-size: 1rem; }
  td.mark { flex: 1 1 30%; text-align: right; font-size: .95rem; }
  td.void { display: none; }
  td[data-before]::before { content: attr(data-before) " "; }
  td[data-after]::after { content: " " attr(data-after); }
}
"""

SCRIPT = """
(() => {
  const every = 5000;
  const lost = document.getElementById("lost");
  let timer = 0;
  let asking = false;
  const selecting = () => !getSelection().isCollapsed;
  const swap = (page) => {
    const main = document.querySelector("main");
    const boxes = () => [...main.querySelectorAll(".box")];
    const scrolled = boxes().map((box) => box.scrollLeft);
    const links = () => [...main.querySelectorAll("a")];
    const focused = links().indexOf(document.activeElement);
    const held = focused < 0 ? "" : document.activeElement.ariaLabel;
    main.replaceChildren(...page.querySelector("main").childNodes);
    boxes().forEach((box, index) => { box.scrollLeft = scrolled[index]; });
    if (focused >= 0) {
      const same = links().find((link) => link.ariaLabel === held);
      (same || links()[focused])?.focus({ preventScroll: true });
    }
    document.title = page.title;
  };
  const refresh = async () => {
    clearTimeout(timer);
    if (document.hidden || asking) return;
    asking = true;
    try {
      const answer = await fetch(location.href, { signal: AbortSignal.timeout(10000) });
      if (!answer.ok) throw new Error(answer.status);
      const text = await answer.text();
      if (!selecting()) swap(new DOMParser().parseFromString(text, "text/html"));
      lost.hidden = true;
    } catch {
      lost.hidden = false;
    }
    asking = false;
    timer = setTimeout(refresh, every);
  };
  document.addEventListener("visibilitychange", refresh);
  timer = setTimeout(refresh, every);
})();
"""


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


POLICY = "; ".join(
    (
        "default-src 'none'",
        f"style-src {_hash(STYLE)}",
        f"script-src {_hash(SCRIPT)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The Content-Security-Policy. The empty icon is an image of `data:`; it spares the
request for a real one."""


def protect(request: Request) -> None:
    """Have the browser run nothing but the page's own script, and frame it nowhere."""
    request.setHeader(b"Content-Security-Policy", POLICY.encode())
    request.setHeader(b"Referrer-Policy", b"no-referrer")
    keep_at_home(request)


def markup(tag: Tag) -> str:
    """A tag as text. Nothing in it has to be waited for, so it is there at once."""
    made: list[bytes] = []
    flattenString(None, tag).addCallback(made.append)
    return made[0].decode()


class LivePage(TextPage):
    """A page that keeps itself fresh, made once a second at most, for all who look.

    Args:
        footer: ready markup.
        seconds: a clock.
        now: seconds since the epoch.
    """

    media_type = b"text/html; charset=utf-8"

    def __init__(
        self,
        *,
        version: str,
        footer: str,
        seconds: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        super().__init__()
        self._version = version
        self._footer = footer
        self._now = now
        self._kept = TTLCache(self.document, seconds)

    def document(self) -> str:
        """The page, made anew; see `html`."""
        raise NotImplementedError

    def render_GET(self, request: Request) -> bytes:
        """The page, which runs nothing but its own script and stands in no frame."""
        protect(request)
        return super().render_GET(request)

    def text(self, _request: Request) -> str:
        """The whole document."""
        return self._kept()

    def top(self, now: float, account: str = "") -> Tag:
        """Who says so, and when."""
        return tags.div(
            tags.span(f"api-exporter {self._version}"),
            tags.span("Account ", tags.b(account)) if account else "",
            tags.span(f"{formatting.day(now)} ", formatting.second(now), " UTC"),
            class_="top",
        )

    def html(self, *, title: str, main: str) -> str:
        """The whole page around what changes, which is ready markup."""
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
{main}
<p id="lost" role="status" hidden>The exporter does not answer.
This page shows its last answer.</p>
{self._footer}
<script>{SCRIPT}</script>
</body>
</html>
"""
