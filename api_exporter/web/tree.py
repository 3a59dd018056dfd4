"""What is served: one `putChild` a line. It is given what it shows."""

from twisted.web.pages import notFound
from twisted.web.resource import IResource, Resource

from api_exporter.serving.page import ReadOnly


def root(
    *,
    status: ReadOnly,
    health: ReadOnly,
    ready: ReadOnly,
    metrics: ReadOnly,
    discovery: ReadOnly,
    metrics_path: str,
    pprof: Resource | None = None,
) -> Resource:
    """The tree of all pages; whatever is not in it is 404."""
    tree = Resource()
    tree.putChild(b"", status)
    tree.putChild(b"health", health)
    tree.putChild(b"ready", ready)
    tree.putChild(b"sd", discovery)
    if pprof is not None:
        debug = notFound()
        debug.putChild(b"pprof", pprof)
        tree.putChild(b"debug", debug)
    *parents, name = metrics_path.strip("/").encode().split(b"/")
    parent: IResource = tree
    for segment in parents:
        child = notFound()
        parent.putChild(segment, child)
        parent = child
    parent.putChild(name, metrics)
    return tree
