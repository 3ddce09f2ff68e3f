"""What the notebooks show: tables, figures and sentences of a run, as HTML."""

from importlib import import_module

_NAMES = {
    "caveats": ("doubts",),
    "conformance": ("protocol",),
    "facts": ("attachments", "environment", "findings", "guests", "operations", "over_time"),
    "first_screen": ("figure", "headline_table", "not_said", "screen", "sure"),
    "html": ("Html", "banner", "recorded", "table"),
    "parameters": ("check_parameters",),
    "run": ("target",),
    "tables": (
        "bullets", "capped", "cells", "comparisons", "gates", "more_measuring", "percentile_ratios",
        "percentiles", "preformatted", "published", "strata", "throttled",
    ),
}  # fmt: skip
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}

__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    """Import a name when it is asked for: notebooks that only measure need no statistics and no drawing."""
    if name == "run":
        return import_module(f"{__name__}.run")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
