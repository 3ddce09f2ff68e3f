"""What public measurements of real Azure answer: computed from the tables, drawn, and written as posts."""
