"""The Agent Network, a gateway to language models: its cost and its limits."""

from api_exporter.subjects import Subject
from api_exporter.subjects.agent_network.families import FAMILIES
from api_exporter.subjects.agent_network.findings import FINDERS
from api_exporter.subjects.agent_network.resources import RESOURCES

SUBJECT = Subject(__name__, resources=RESOURCES, families=FAMILIES, finders=FINDERS)
