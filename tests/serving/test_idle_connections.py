"""Which idle connection is closed if there are too many."""

from twisted.trial.unittest import SynchronousTestCase

from api_exporter.serving.idle_connections import IdleConnections


class IdleTests(SynchronousTestCase):
    def idle(self, *connections: str) -> IdleConnections[str]:
        """Return connections, idle longest first; the first letter is the host."""
        idle: IdleConnections[str] = IdleConnections()
        for connection in connections:
            idle.add(connection, connection[0])
        return idle

    def test_most(self) -> None:
        """The host with the most loses the connection that has been idle longest."""
        idle = self.idle("a1", "b1", "b2", "a2", "b3", "c1")
        self.assertEqual("b1", idle.pop())
        self.assertIn(idle.pop(), ("a1", "b2"))

    def test_busy(self) -> None:
        """A connection with a request is not idle; after it, it is the newest one."""
        idle = self.idle("a1", "a2", "a3")
        idle.discard("b1", "b")
        for _ in range(2):
            idle.discard("a1", "a")
        idle.add("a1", "a")
        self.assertEqual(["a2", "a3", "a1", None], [idle.pop() for _ in range(4)])
