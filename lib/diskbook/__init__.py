"""diskbook: measure Azure disks honestly."""

import sys

__version__ = "0.3.0"

# An optional check of jsonschema's, for internationalised addresses, which no notebook has: building its
# grammar takes longer than importing all the rest of papermill, nbformat or nbconvert.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
