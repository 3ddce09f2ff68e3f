"""The question and its set-up: records, the schedule of blocks, the rules between them."""
