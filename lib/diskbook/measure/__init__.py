"""A whole run: plan it, check the prerequisites, provision, measure, tear down."""
