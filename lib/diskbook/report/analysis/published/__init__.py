"""The articles: their published figures and set-ups, what these support, and ours next to them."""
