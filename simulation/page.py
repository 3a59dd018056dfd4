"""A page about one run: its events on a time line, to find the cause of a violation.

`Timeline` collects events while the world runs. The page has no dependency: a script in
it draws the part of the run that the reader chooses.
"""

import json
from html import escape
from pathlib import Path

from msgspec import Struct

from simulation.invariants import Checks
from simulation.run import Run
from simulation.upstream import Request
from simulation.weather import WELL, Spell
from simulation.world import NAMES, World

SECONDS = 3600.0
"""The part of the run that the page shows at first."""


class Bar(Struct, array_like=True):
    """A state of one row from a time to another, in seconds of the clock."""

    row: str
    begin: float
    end: float | None
    kind: str
    text: str


class Timeline:
    """The bars of a run, and the checks of its invariants.

    Args:
        checks: counts the checked invariants.
    """

    def __init__(self, world: World, checks: Checks) -> None:
        self._world = world
        self._checks = checks
        self._open: dict[str, Bar] = {}
        self._requests: dict[Request, Bar] = {}
        self._spells: dict[Spell, None] = {}
        self._lines = 0
        self.bars: list[Bar] = []
        self.events: list[tuple[float, str, str]] = []

    def look(self) -> None:
        """Note what has changed in this step."""
        world, now = self._world, self._world.seconds()
        up = world.exporter is not None
        self._state("exporter", "up" if up else "down", "runs" if up else "is down")
        self._state("disk", "failed" if world.disk.full else "none", "full")
        away = world.now() - world.clock()
        self._state("wall clock", "failed" if away else "none", f"{away:+.0f} s")
        computing = up and world.exporter.machine.compute_thread.busy  # type: ignore[union-attr]
        self._state("computing", "up" if computing else "none", "computes")
        for spell in world.weather.spells:
            if spell not in self._spells:
                self._spells[spell] = None
                share = f"{spell.share:.0%} of {spell.path or 'all'}"
                text = f"{', '.join(spell.kinds)}: {share} for {spell.account or 'all'}"
                row = f"weather of {spell.account or 'all'}"
                self.bars.append(Bar(row, now, spell.end, "failed", text))
        self._look_at_requests(now)
        for account in NAMES:
            self._look_at(account)

    def note(self, line: str) -> None:
        """Note an event of the history: its time, kind and words."""
        at, _, rest = line.partition(" ")
        kind, _, words = rest.partition(": ")
        if kind != "request":
            self.events.append((float(at), kind, words))

    def _look_at_requests(self, now: float) -> None:
        pending = self._world.upstream.pending
        for request, bar in [*self._requests.items()]:
            if request not in pending:
                bar.end = request.answered_at or now
                del self._requests[request]
        for request in pending:
            if request not in self._requests:
                kind = "up" if request.state == WELL else "failed"
                bar = Bar(f"{request.account} requests", request.at, None, kind, "")
                bar.text = f"{request.path}: {request.state}"
                if request.wait is not None:
                    bar.text += f", Retry-After {request.wait:.0f}"
                self._requests[request] = bar
                self.bars.append(bar)

    def _look_at(self, account: str) -> None:
        known = self._world.known.get(account)
        freshness = {} if known is None else known.network.telemetry.freshness
        for row in [row for row in self._open if row.startswith(f"{account} ")]:
            if row.removeprefix(f"{account} ") not in freshness:
                self._state(row, "none", "")
        for name, standing in freshness.items():
            kind, text = "up", "is known"
            if standing.ended_at is None:
                kind, text = "none", ""
            elif standing.withdrawn:
                kind, text = "down", f"withdrawn: {standing.error}"
            elif standing.error is not None:
                kind, text = "failed", f"{standing.error.reason}: {standing.error}"
            elif standing.supported is False:
                kind, text = "absent", "not supported"
            self._state(f"{account} {name}", kind, text)

    def _state(self, row: str, kind: str, text: str) -> None:
        """Begin another state of a row, unless it is the same as before."""
        bar = self._open.get(row)
        if bar is not None and (bar.kind, bar.text) == (kind, text):
            return
        if bar is not None:
            bar.end = self._world.seconds()
            del self._open[row]
        if kind != "none":
            self._open[row] = bar = Bar(row, self._world.seconds(), None, kind, text)
            self.bars.append(bar)

    def write(self, path: Path, done: Run) -> None:
        """Write the page."""
        end = self._world.seconds()
        for bar in self.bars:
            bar.end = end if bar.end is None else min(bar.end, end)
        looks = ", ".join(f"{name} {n}" for name, n in self._checks.counts.items())
        data = {
            "bars": [[b.row, b.begin, b.end, b.kind, b.text] for b in self.bars],
            "events": self.events,
            "end": end,
            "seconds": SECONDS,
            "found": done.found,
        }
        text = PAGE.replace("SEED", str(done.seed)).replace("LOOKS", escape(looks))
        text = text.replace("FOUND", escape(done.found or "no invariant is violated"))
        text = text.replace("STEP", str(done.step))
        encoded = json.dumps(data).replace("</", "<\\/")
        path.write_text(text.replace("DATA", encoded))


PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Seed SEED</title>
<style>
body { font: 13px sans-serif; margin: 1em; color: #222 }
h1 { font-size: 1.3em } pre { white-space: pre-wrap; background: #fee; padding: .5em }
svg { width: 100%; background: #fafafa; border: 1px solid #ccc }
svg text { font-size: 11px } .grid { stroke: #ddd }
.up { fill: #7b7 } .failed { fill: #e70 } .down { fill: #c22 } .absent { fill: #bbb }
.event { stroke: #36c } .found { stroke: #c00; stroke-width: 2 }
table { border-collapse: collapse } td { padding: 0 .6em; vertical-align: top }
tr:nth-child(even) { background: #f4f4f4 } #more { max-height: 40em; overflow: auto }
label { margin-right: 1.5em } i { padding: 0 1em; margin: 0 .3em 0 1em }
</style></head><body>
<h1>Seed SEED, step STEP</h1>
<pre>FOUND</pre>
<p>Checked invariants: LOOKS.</p>
<p><label>until <input type="range" id="until" min="0" max="1000" value="1000"
style="width: 30em"></label>
<label>minutes <select id="span"><option>2<option>10<option selected>60<option>360
<option>1440<option>10080</select></label>
<label>rows with <input id="filter" placeholder="alpha peers"></label>
<span id="where"></span></p>
<p><i style="background: #7b7"></i>good<i style="background: #e70"></i>fails
<i style="background: #c22"></i>down or withdrawn<i style="background: #bbb"></i>absent;
hold the pointer over a bar for its text</p>
<svg id="chart"></svg>
<div id="more"><table id="events"></table></div>
<script>
const data = DATA;
const by = id => document.getElementById(id);
const make = (parent, name, attributes, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text) made.textContent = text;
  parent.appendChild(made);
  return made;
};
const clock = at => {
  const text = new Date(at * 1000).toISOString().slice(11, 23);
  return `day ${Math.floor(at / 86400)}, ${text}`;
};
const LEFT = 210, HEIGHT = 15, TOP = 22;
function draw() {
  const span = by("span").value * 60;
  const end = Math.max(Math.min(span, data.end), data.end * by("until").value / 1000);
  const begin = Math.max(0, end - span), filter = by("filter").value;
  const width = by("chart").clientWidth - LEFT - 10;
  const x = at => LEFT + (at - begin) / (end - begin || 1) * width;
  const bars = data.bars.filter(
    b => b[1] <= end && b[2] >= begin && (b[0] + " " + b[4]).includes(filter));
  const rank = row => /^(exporter|disk|wall|computing|weather)/.test(row) ? "0" + row
    : row.endsWith("requests") ? "1" + row : "2" + row;
  const rows = [...new Set(bars.map(b => b[0]))].sort(
    (one, other) => rank(one) < rank(other) ? -1 : 1);
  const chart = by("chart");
  chart.replaceChildren();
  const bottom = TOP + rows.length * HEIGHT + 5;
  chart.setAttribute("height", bottom);
  by("where").textContent = `${clock(begin)} to ${clock(end)}`;
  for (let tick = 0; tick <= 6; tick++) {
    const at = begin + (end - begin) * tick / 6;
    make(chart, "line", {x1: x(at), x2: x(at), y1: TOP, y2: bottom, class: "grid"});
    make(chart, "text", {x: x(at) - (tick == 6 ? 70 : 0), y: 12}, clock(at).slice(7));
  }
  rows.forEach((row, i) =>
    make(chart, "text", {x: 4, y: TOP + i * HEIGHT + 11}, row));
  for (const [row, from, to, kind, text] of bars) {
    const left = Math.max(x(from), LEFT), right = Math.min(x(to), LEFT + width);
    const bar = make(chart, "rect", {
      x: left, width: Math.max(2, right - left), height: HEIGHT - 3,
      y: TOP + rows.indexOf(row) * HEIGHT + 1, class: kind});
    const lasts = `${clock(from)}\\n${(to - from).toFixed(3)} s`;
    make(bar, "title", {}, `${row}: ${text}\\n${lasts}`);
  }
  const events = data.events.filter(
    e => e[0] >= begin && e[0] <= end && (e[1] + " " + e[2]).includes(filter));
  for (const [at, kind, words] of events) {
    if (kind == "log") continue;
    const line = make(chart, "line",
      {x1: x(at), x2: x(at), y1: TOP - 6, y2: TOP + 2, class: "event"});
    make(line, "title", {}, `${clock(at)}: ${kind} ${words}`);
  }
  if (data.found && end >= data.end)
    make(chart, "line",
      {x1: x(data.end), x2: x(data.end), y1: 0, y2: bottom, class: "found"});
  by("events").replaceChildren();
  for (const event of events.slice(-1000)) {
    const tr = by("events").insertRow();
    [clock(event[0]), event[1], event[2]].forEach(
      text => { tr.insertCell().textContent = text; });
  }
}
for (const id of ["until", "span", "filter"]) by(id).addEventListener("input", draw);
addEventListener("resize", draw);
draw();
</script></body></html>
"""
