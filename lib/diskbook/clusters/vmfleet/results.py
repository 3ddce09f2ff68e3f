"""What import and tables ask of results of VMFleet (`facts.neighbours`)."""

from diskbook.clusters.vmfleet.archive import is_fleet, parse as parse_archive
from diskbook.clusters.vmfleet.fleet import join, machine
from diskbook.clusters.vmfleet.names import cell_and_machine, grouped, place_of, spec_of
from diskbook.clusters.vmfleet.table import is_table, parse as parse_table

__all__ = [
    "cell_and_machine",
    "grouped",
    "is_fleet",
    "is_table",
    "join",
    "machine",
    "parse_archive",
    "parse_table",
    "place_of",
    "spec_of",
]
