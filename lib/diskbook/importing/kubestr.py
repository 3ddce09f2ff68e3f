"""Reader of what `kubestr fio -o json` writes: fio's JSON without zeros, and the storage class it measured.

::

    {"TestName": "FIO test results", "Raw": {"size": "100Gi", "storageClass": {"metadata":
     {"name": "premium"}, "parameters": {"skuName": "Premium_LRS"}}, "fioConfig": "[global]\\nverify=0\\n...",
     "result": {"fio version": "fio-3.20", "jobs": [...]}}}

Text in, no I/O.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from diskbook.importing.fio import json_files
from diskbook.importing.fio.shown_options import JobFile, Jobs
from diskbook.tools.fio import documents
from diskbook.tools.record import Parsed, UnusableError

FORMAT = "kubestr JSON"


def is_kubestr(text: str) -> bool:
    """Whether the text is kubestr's envelope around results of fio."""
    return '"storageClass"' in text and '"fio version"' in text and text.lstrip()[:1] in ("{", "[")


def parse(text: str, source: str) -> Parsed:
    """Read all results; each measurement's target is the storage class, its SKU and the volume's size.

    Raises UnusableError when nothing can be used: why.
    """
    try:
        envelopes = list(_envelopes(json.loads(text)))
    except (ValueError, RecursionError):
        raise UnusableError(source, "kubestr's JSON is damaged or cut") from None
    parts = []
    for envelope in envelopes:
        jobs, target = _jobs(str(envelope.get("fioConfig", ""))), _target(envelope)
        for result in documents.inside(envelope.get("result")):
            read = json_files.parse(json.dumps(_with_options(result, jobs)), source)
            measured = tuple(replace(item, target=target) for item in read.measurements)
            parts.append(replace(read, measurements=measured))
    if not parts or len({part.version for part in parts}) > 1:
        raise UnusableError(source, "it holds no result of fio, or results of different versions")
    measurements = tuple(item for part in parts for item in part.measurements)
    flags = tuple(dict.fromkeys(flag for part in parts for flag in part.flags))
    return Parsed("fio", parts[0].version, FORMAT, measurements, flags)


def _envelopes(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, dict) and isinstance(content.get("storageClass"), dict):
        yield content
    elif isinstance(content, dict | list):
        for item in content.values() if isinstance(content, dict) else content:
            yield from _envelopes(item)


def _target(envelope: Mapping[str, Any]) -> str:
    """Name the storage class, with the SKU of its disks and the size of the volume where they are told."""
    storage = envelope["storageClass"]
    metadata, parameters = (
        part if isinstance(part, dict) else {}
        for part in (storage.get("metadata"), storage.get("parameters"))
    )
    sku = next((value for key, value in parameters.items() if key.lower() in _SKU), "")
    return " ".join(str(part) for part in (metadata.get("name"), sku, envelope.get("size")) if part)[:200]


_SKU = ("skuname", "storageaccounttype", "type")


def _jobs(text: str) -> Jobs:
    """Options of the job file, which kubestr's own list of options shortens."""
    file = JobFile()
    for line in text.splitlines():
        if line.strip():
            file.add(line.strip())
    return file.jobs


def _with_options(result: Mapping[str, Any], jobs: Jobs) -> dict[str, Any]:
    entries = result.get("jobs")
    named = [
        {
            **entry,
            "job options": {**jobs.get(str(entry.get("jobname")), {}), **(entry.get("job options") or {})},
        }
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict)
    ]
    return {**result, "jobs": named}
