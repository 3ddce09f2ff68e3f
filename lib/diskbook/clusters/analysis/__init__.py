"""The analyses of s2d-azure and nested-resiliency."""
