"""What is asked, and what a table of trials is: scenarios, schedules, rules, columns."""
