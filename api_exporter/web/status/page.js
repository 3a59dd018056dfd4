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
    const opened = [...main.querySelectorAll("details[open]")].map((fold) => fold.id);
    const stops = () => [...main.querySelectorAll("a, summary")];
    const nameOf = (stop) => [stop.getAttribute("href"), stop.ariaLabel, stop.parentNode.id].join();
    const focused = stops().indexOf(document.activeElement);
    const held = focused < 0 ? "" : nameOf(document.activeElement);
    main.replaceChildren(...page.querySelector("main").childNodes);
    opened.forEach((id) => { document.getElementById(id)?.setAttribute("open", ""); });
    boxes().forEach((box, index) => { box.scrollLeft = scrolled[index]; });
    if (focused >= 0) {
      const same = stops().find((stop) => nameOf(stop) === held);
      (same || stops()[focused])?.focus({ preventScroll: true });
    }
    document.title = page.title;
    const icon = "link[rel=icon]";
    document.querySelector(icon).replaceWith(page.querySelector(icon));
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
