"""The text that commands print: tables and sentences. Pure."""
