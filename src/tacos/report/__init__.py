"""What was found, shown: figures and tables for people, records for programs."""
